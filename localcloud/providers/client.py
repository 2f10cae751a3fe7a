"""Calls to the local cloud, through the official SDK's generic RPC client."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from alibabacloud_tea_openapi.client import Client as OpenApiClient
from alibabacloud_tea_openapi.exceptions import AlibabaCloudException
from alibabacloud_tea_openapi.models import Config, OpenApiRequest, Params
from darabonba.exceptions import UnretryableException

VERSIONS = {
    "ecs": "2014-05-26",
    "vpc": "2016-04-28",
    "nas": "2017-06-26",
    "ram": "2015-05-01",
    "sts": "2015-04-01",
}

#: Errors after which the same call may succeed: the other resource is still on its way.
_PASSING = ("IncorrectStatus", "IncorrectVSwitchStatus", "TaskConflict", "OperationConflict", "Throttling")


class CloudError(Exception):
    """The API refused a call.

    Attributes:
        code: e.g. `InvalidVpcId.NotFound`.
    """

    def __init__(self, action: str, code: str, message: str) -> None:
        super().__init__(f"{action}: {code}: {message}")
        self.code = code

    @property
    def not_found(self) -> bool:
        """Whether the resource that the call names does not exist."""
        return "NotFound" in self.code or "NotExist" in self.code


class Cloud:
    """The API of one region.

    Args:
        endpoint: host:port.
        region: region id.
        key_id, key_secret: access key.
    """

    def __init__(self, endpoint: str, region: str, key_id: str, key_secret: str) -> None:
        self.region = region
        self._client = OpenApiClient(
            Config(
                access_key_id=key_id,
                access_key_secret=key_secret,
                endpoint=endpoint,
                protocol="HTTP",
                region_id=region,
                connect_timeout=10_000,
                read_timeout=60_000,
            )
        )

    def call(self, product: str, action: str, parameters: Mapping[str, Any], *, once: bool = False) -> dict[str, Any]:
        """Make one call; passing conflicts, throttling and missing answers are retried for a minute.

        Args:
            product: `ecs`, `vpc`, `nas`, `ram` or `sts`.
            action: name of the API action.
            parameters: nested dicts and lists become `A.1.B`; None values are left out.
            once: send a client token, so that a repeated call makes nothing twice; for actions that take one.

        Raises:
            CloudError: the API refused the call.
        """
        query = {"RegionId": self.region} if product not in ("ram", "sts") else {}
        query.update(flatten(parameters))
        if once:
            query["ClientToken"] = uuid.uuid4().hex
        params = Params(
            action=action,
            version=VERSIONS[product],
            protocol="HTTP",
            pathname="/",
            method="POST",
            auth_type="AK",
            style="RPC",
            req_body_type="formData",
            body_type="json",
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                answer = self._client.call_api(params, OpenApiRequest(query=query), _runtime())
            except (OSError, UnretryableException) as error:
                # No answer: the same call again, with the same client token, so that nothing is made twice.
                if time.monotonic() < deadline:
                    time.sleep(0.5)
                    continue
                raise CloudError(action, "NoAnswer", str(error)) from error
            except AlibabaCloudException as error:
                code = str(error.code)
                if code.startswith(_PASSING) and time.monotonic() < deadline:
                    time.sleep(0.5)
                    continue
                raise CloudError(action, code, str(error.message)) from error
            return dict(answer["body"])

    def wait(self, what: str, ready: Callable[[], bool], *, seconds: float = 300) -> None:
        """Ask until `ready` says yes.

        Raises:
            CloudError: it did not within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                raise CloudError(what, "Timeout", f"not ready after {seconds:g} s")
            time.sleep(0.3)


def _runtime() -> Any:
    from darabonba.runtime import RuntimeOptions

    return RuntimeOptions()


def flatten(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested parameters as the RPC protocol writes them: `{"Tag": [{"Key": "a"}]}` becomes `{"Tag.1.Key": "a"}`."""
    flat: dict[str, str] = {}
    for name, value in parameters.items():
        if value is None:
            continue
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{key}."))
        elif isinstance(value, list | tuple):
            for number, item in enumerate(value, 1):
                if isinstance(item, Mapping):
                    flat.update(flatten(item, f"{key}.{number}."))
                else:
                    flat[f"{key}.{number}"] = _text(item)
        else:
            flat[key] = _text(value)
    return flat


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
