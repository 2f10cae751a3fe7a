"""What an action gets to work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from localcloud.api.access import Caller
from localcloud.api.clock import Clock
from localcloud.api.knobs import Knobs
from localcloud.api.offers import Offers
from localcloud.api.oidc import Issuers
from localcloud.api.params import Params
from localcloud.api.rates import Rates
from localcloud.api.store import Doc, Store
from localcloud.api.store.database import Filters
from localcloud.api.store.index import ANY

if TYPE_CHECKING:
    from localcloud.api.driver import Driver

#: Least entries of a page that is asked for by `MaxResults`.
_SMALLEST_PAGE = 10


@dataclass(slots=True)
class Cloud:
    """One local cloud: its database, clock, knobs, what it sells, and the driver of its hosts."""

    store: Store
    clock: Clock
    knobs: Knobs
    offers: Offers
    account_id: str
    region: str
    driver: Driver
    rates: Rates
    issuers: Issuers
    #: `host:port` under which clients reach this cloud.
    endpoint: str


@dataclass(slots=True)
class Call:
    """One request on its way through an action."""

    cloud: Cloud
    action: str
    params: Params
    caller: Caller
    region: str
    now: float
    #: Run after the transaction is committed: what the machine below has to do.
    effects: list[Callable[[Driver], None]] = field(default_factory=list)

    @property
    def store(self) -> Store:
        """The database."""
        return self.cloud.store

    def after(self, effect: Callable[[Driver], None]) -> None:
        """Have something done once the transaction is committed (never if it is rolled back)."""
        self.effects.append(effect)

    def network_changed(self) -> None:
        """Something that decides which packet may go where has changed."""
        self.after(lambda driver: driver.network_changed())

    def listing(
        self,
        kind: str,
        filters: Filters,
        *,
        ids: list[str] | None = None,
        default_size: int = 10,
        max_size: int = 100,
        tags: dict[str, str] | None = None,
        visible: float | None = None,
        keep: Callable[[Doc], bool] | None = None,
    ) -> tuple[list[Doc], dict[str, Any]]:
        """One page of resources by the request's paging parameters.

        `MaxResults` outside of what is allowed is taken as the nearest that is; `PageSize` then is an error.

        Returns:
            Documents, and the members that describe the page (TotalCount, PageNumber, PageSize, NextToken).
        """
        params = self.params
        wanted = dict(filters)
        for key, value in (tags or {}).items():
            wanted[f"tag:{key}"] = value or ANY  # a key without a value finds all that have the key
        token = params.text("NextToken")
        if "MaxResults" in params or token:  # other page parameters do not count then
            size = min(max(params.number("MaxResults", default_size), _SMALLEST_PAGE), max(max_size, _SMALLEST_PAGE))
            page = self.store.page(kind, wanted, ids=ids, size=size, token=token or None, visible=visible, keep=keep)
            return page.items, {"TotalCount": page.total, "NextToken": page.next_token, "MaxResults": size}
        size = params.number("PageSize", default_size, 1, max_size)
        number = params.number("PageNumber", 1, 1)
        page = self.store.page(kind, wanted, ids=ids, size=size, number=number, visible=visible, keep=keep)
        return page.items, {
            "TotalCount": page.total,
            "PageNumber": number,
            "PageSize": size,
            "NextToken": "",
        }


def tag_list(doc: Doc, upper: bool = True) -> dict[str, Any]:
    """Tags of a resource as ECS and VPC render them."""
    key, value = ("TagKey", "TagValue") if upper else ("Key", "Value")
    return {"Tag": [{key: name, value: text} for name, text in (doc.get("tags") or {}).items()]}
