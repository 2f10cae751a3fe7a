"""The stand-in alicloud provider: the table of resources behind the engine's protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from localcloud.providers.client import Cloud, CloudError
from localcloud.providers.functions import FUNCTIONS
from localcloud.providers.resources import RESOURCES
from localcloud.providers.schema import check_inputs, coerced, forces_replacement, load
from localcloud.providers.servicer import Provider, ProviderError


class Alicloud(Provider):
    """Serves the resource types of `RESOURCES` over the API that its inputs name."""

    version = "4.0.0"

    def __init__(self) -> None:
        self._cloud: Cloud | None = None

    @property
    def cloud(self) -> Cloud:
        """The configured API."""
        if self._cloud is None:
            raise ProviderError("the stand-in provider has not been configured with an endpoint and an access key")
        return self._cloud

    def serves(self, token: str) -> bool:
        """Whether the table has the type."""
        return token in RESOURCES

    def configure(self, arguments: Mapping[str, Any]) -> None:
        """Endpoint, region and access key, as the real provider takes them."""
        endpoints = _decoded(arguments.get("endpoints")) or [{}]
        endpoint = endpoints[0].get("ecs")
        if endpoint:
            self._cloud = Cloud(
                endpoint=endpoint,
                region=str(arguments.get("region")),
                key_id=str(arguments.get("accessKey")),
                key_secret=str(arguments.get("secretKey")),
            )

    def check(self, token: str, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        """By the real provider's schema."""
        return check_inputs(token, inputs)

    def replaces(self, token: str) -> frozenset[str]:
        """By the real provider's schema."""
        return forces_replacement(token)

    def preview_outputs(self, token: str, inputs: Mapping[str, Any]) -> frozenset[str]:
        """Everything that the schema lists as an output and that is no given input."""
        return frozenset(load()["resources"][token]["outputs"]) - set(inputs)

    def create(self, token: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Make it, then read it back."""
        try:
            identity = RESOURCES[token].create(self.cloud, inputs)
            found = RESOURCES[token].read(self.cloud, identity) or {}
        except CloudError as error:
            raise ProviderError(str(error)) from error
        return identity, {**_known(found), **inputs}

    def read(self, token: str, identity: str, properties: dict[str, Any]) -> dict[str, Any] | None:
        """Read it."""
        try:
            found = RESOURCES[token].read(self.cloud, identity)
        except CloudError as error:
            raise ProviderError(str(error)) from error
        return None if found is None else coerced(token, found)

    def update(self, token: str, identity: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        """Change it, then read it back."""
        try:
            RESOURCES[token].update(self.cloud, identity, old, new)
            found = RESOURCES[token].read(self.cloud, identity) or {}
        except CloudError as error:
            raise ProviderError(str(error)) from error
        return {**_known(found), **new}

    def delete(self, token: str, identity: str, properties: dict[str, Any]) -> None:
        """Remove it."""
        try:
            RESOURCES[token].delete(self.cloud, identity)
        except CloudError as error:
            raise ProviderError(str(error)) from error

    def invoke(self, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call one of `FUNCTIONS`."""
        if token not in FUNCTIONS:
            raise ProviderError(f"{token} is not served by the stand-in provider")
        try:
            return FUNCTIONS[token](self.cloud, arguments)
        except CloudError as error:
            raise ProviderError(str(error)) from error


def _decoded(value: Any) -> Any:
    """Provider inputs that are no strings reach the provider as JSON text."""
    return json.loads(value) if isinstance(value, str) and value else value


def _known(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if value is not None}
