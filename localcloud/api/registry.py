"""The actions this cloud has: product, parameters, whether they change anything, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localcloud.api.params import Declared

if TYPE_CHECKING:
    from localcloud.api.call import Call, Cloud
    from localcloud.api.params import Params

Handler = Callable[["Call"], dict[str, Any]]
Prepare = Callable[["Cloud", "Params"], None]

#: API version by product, as the clients send it.
VERSIONS = {
    "2014-05-26": "ecs",
    "2016-04-28": "vpc",
    "2017-06-26": "nas",
    "2015-05-01": "ram",
    "2015-04-01": "sts",
    "2018-08-28": "tag",
    "2015-06-12": "location",
    "2019-08-15": "ims",
    "2017-12-14": "bss",
}


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    Attributes:
        product: `ecs`, `vpc`, ...
        name: `RunInstances`.
        declared: its parameters.
        write: runs in a transaction; `ClientToken` and `DryRun` work if declared.
        handler: does the work and returns the answer without its RequestId.
        anonymous: needs no signature.
        prepare: done first, in a thread: what may take long and changes no resources.
    """

    product: str
    name: str
    declared: Declared
    write: bool
    handler: Handler
    anonymous: bool = False
    prepare: Prepare | None = None


ACTIONS: dict[tuple[str, str], Action] = {}


def action(
    product: str,
    name: str,
    parameters: str,
    *,
    write: bool = False,
    anonymous: bool = False,
    prepare: Prepare | None = None,
) -> Callable[[Handler], Handler]:
    """Register the decorated function as an action; `parameters` is explained at `Declared`, the rest at `Action`."""

    def register(handler: Handler) -> Handler:
        key = (product, name.lower())
        if key in ACTIONS:
            raise ValueError(f"{product} {name} is registered twice")
        ACTIONS[key] = Action(product, name, Declared(parameters), write, handler, anonymous, prepare)
        return handler

    return register


def read(product: str, name: str, parameters: str = "") -> Callable[[Handler], Handler]:
    """Register an action that changes nothing."""
    return action(product, name, parameters)


def write(product: str, name: str, parameters: str = "") -> Callable[[Handler], Handler]:
    """Register an action that changes resources."""
    return action(product, name, parameters, write=True)
