"""The SDK clients of a refresh, and calls that wait where the cloud throttles."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hpc.catalog.override import Problem
from hpc.errors import CannotRunError

_Answer = TypeVar("_Answer")

#: Endpoint of the billing API for accounts of the China site; it has no regional ones.
_BSS_ENDPOINT = "business.aliyuncs.com"

_ATTEMPTS = 8

#: Beginnings of codes that say: not with these credentials, and no other call of the kind will work either.
_REFUSED = ("Forbidden", "NoPermission", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSecurityToken")
_REFUSED_TOO = (
    "NotAuthorized",
    "InvalidCredentials",
    "IncompleteSignature",
    "MissingAccessKeyId",
    "InvalidApi.NotFound",
)


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients of the official SDKs.

    Attributes:
        ecs: `alibabacloud_ecs20140526.client.Client`.
        bss: `alibabacloud_bssopenapi20171214.client.Client`, or None where NAS prices are not asked for.
        sleep: waits the given seconds between attempts.
        endpoint: `HOST:PORT` of an API server that is not Alibaba Cloud's own, else None.
    """

    ecs: Any
    bss: Any | None = None
    sleep: Callable[[float], None] = field(default=time.sleep)
    endpoint: str | None = None


def connect(region: str, *, endpoint: str | None = None) -> Clients:
    """Clients for a region.

    Args:
        region: region id.
        endpoint: `HOST:PORT` of another API server, spoken to by plain HTTP, for instance the local cloud.

    Credentials come from the SDK's own chain (environment, configuration file, role of the instance); another API
    server is also spoken to without any.

    Raises:
        CannotRunError: HPC021, there are no credentials.
    """
    ecs_client = importlib.import_module("alibabacloud_ecs20140526.client").Client
    bss_client = importlib.import_module("alibabacloud_bssopenapi20171214.client").Client
    config = importlib.import_module("alibabacloud_tea_openapi.utils_models").Config

    if endpoint is None:
        return Clients(
            ecs=ecs_client(config(credential=_credentials(), region_id=region)),
            bss=bss_client(config(credential=_credentials(), region_id=region, endpoint=_BSS_ENDPOINT)),
        )
    where = {
        "access_key_id": os.environ.get("ALIBABA_CLOUD_ACCESS_KEY_ID") or "local",
        "access_key_secret": os.environ.get("ALIBABA_CLOUD_ACCESS_KEY_SECRET") or "local",
        "region_id": region,
        "endpoint": endpoint,
        "protocol": "http",
        "no_proxy": endpoint.partition(":")[0],
    }
    return Clients(ecs=ecs_client(config(**where)), bss=bss_client(config(**where)), endpoint=endpoint)


def _credentials() -> Any:
    from alibabacloud_credentials.client import Client as CredentialClient

    try:
        return CredentialClient()
    except Exception as error:
        raise CannotRunError(
            f"there are no credentials of Alibaba Cloud: {_first_line(error)}",
            code="HPC021",
            fix="set ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET, or run `aliyun configure`",
        ) from error


def ecs_models() -> Any:
    """Request models of the ECS SDK. It has no types, and loading it takes a while: only a refresh does."""
    return importlib.import_module("alibabacloud_ecs20140526.models")


def bss_models() -> Any:
    """Request models of the billing SDK."""
    return importlib.import_module("alibabacloud_bssopenapi20171214.models")


def code_of(error: BaseException) -> str:
    """The API's error code, or the kind of the error where there is none."""
    code = getattr(error, "code", None)
    return str(code) if code else type(error).__name__


def _first_line(error: BaseException) -> str:
    text = str(getattr(error, "message", None) or error).strip()
    return text.splitlines()[0][:300] if text else type(error).__name__


def is_transient(error: BaseException) -> bool:
    """Whether the same call may work a little later: throttled, unavailable, or the connection broke."""
    code = code_of(error)
    if code.startswith(("Throttling", "ServiceUnavailable", "InternalError")):
        return True
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 500:
        return True
    return type(error).__module__.startswith(("requests", "urllib3")) or isinstance(
        error, (ConnectionError, TimeoutError)
    )


def is_refused(error: BaseException) -> bool:
    """Whether the account may not make this kind of call at all."""
    return code_of(error).startswith((*_REFUSED, *_REFUSED_TOO))


def call(clients: Clients, method: Callable[[Any], _Answer], request: Any) -> _Answer:
    """One API call, repeated with growing waits where the cloud throttles or does not answer.

    A throttled minute clears at the next one, so the waits go up to half a minute.

    Raises:
        Exception: whatever the SDK raised last.
    """
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

    retrying = Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.5, max=30),
        sleep=clients.sleep,
        reraise=True,
    )
    return retrying(method, request)


class Failures:
    """What failed in one part of a refresh, told once per error code and not once per call."""

    def __init__(self, part: str, fix: str) -> None:
        self._part = part
        self._fix = fix
        self._seen: dict[str, tuple[str, list[str]]] = {}
        self.hopeless = False
        """Further calls of this kind make no sense."""

    def add(self, what: str, error: BaseException) -> None:
        """Note a failed call."""
        _, items = self._seen.setdefault(code_of(error), (_first_line(error), []))
        items.append(what)
        # Retries are behind us: a cloud that still does not answer will not answer the next hundred calls.
        self.hopeless = self.hopeless or is_refused(error) or is_transient(error)

    def note(self, code: str, what: str, message: str) -> None:
        """Note something that is wrong with an answer."""
        _, items = self._seen.setdefault(code, (message, []))
        items.append(what)

    def problems(self) -> tuple[Problem, ...]:
        """One problem per error code."""
        out = []
        for code, (message, items) in self._seen.items():
            named = ", ".join(items[:3]) + (f" and {len(items) - 3} more" if len(items) > 3 else "")
            out.append(
                Problem(
                    code="HPC022",
                    what=f"{self._part}: {named}",
                    message=f"{code}: {message}" + ("; the rest was not asked for" if self.hopeless else ""),
                    fix=self._fix,
                )
            )
        return tuple(out)
