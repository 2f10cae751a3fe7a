"""How a resource type is served: what every kind can do, and the table-driven kind that most of them are."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.providers.client import Cloud, CloudError


class Resource(ABC):
    """One resource type. `token` is its Pulumi type; properties are named as Pulumi names them."""

    token: str

    @abstractmethod
    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """Make the resource, wait until it can be used, return its id."""

    @abstractmethod
    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """Properties as the cloud has them now (inputs and outputs), or None where there is no such resource."""

    @abstractmethod
    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Change in place what differs between `old` and `new`."""

    @abstractmethod
    def delete(self, cloud: Cloud, identity: str) -> None:
        """Remove the resource; one that is gone already is no error."""


def at(answer: Mapping[str, Any], path: str) -> Any:
    """Value at a dotted path of an answer (`Vpcs.Vpc.0.Status`), or None."""
    value: Any = answer
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        elif isinstance(value, Mapping):
            value = value.get(part)
        else:
            return None
    return value


def tag_parameters(tags: Mapping[str, str] | None) -> list[dict[str, str]] | None:
    """Tags as the API takes them: `[{"Key": ..., "Value": ...}]`."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())] if tags else None


def tags_of(answer: Mapping[str, Any]) -> dict[str, str]:
    """Tags of a described resource, in either of the two shapes that the products use."""
    tags = answer.get("Tags") or {}
    items = tags.get("Tag", []) if isinstance(tags, Mapping) else tags
    found = {}
    for item in items:
        key = item.get("TagKey", item.get("Key"))
        if key is not None and not key.startswith("acs:"):
            found[key] = item.get("TagValue", item.get("Value", ""))
    return found


def set_tags(
    cloud: Cloud, product: str, kind: str, identity: str, old: Mapping[str, str], new: Mapping[str, str]
) -> None:
    """Make the tags of a resource what `new` says, with TagResources and UntagResources of its product."""
    gone = sorted(set(old) - set(new))
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    where = {"ResourceType": kind, "ResourceId": [identity]}
    if gone:
        cloud.call(product, "UnTagResources" if product == "vpc" else "UntagResources", {**where, "TagKey": gone})
    if changed:
        cloud.call(product, "TagResources", {**where, "Tag": tag_parameters(changed)})


@dataclass(frozen=True, slots=True)
class Change:
    """An action that changes some properties of a resource in place: property -> API parameter."""

    action: str
    parameters: Mapping[str, str]
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TableResource(Resource):
    """A resource whose life is one create, one describe, some modify and one delete action.

    Attributes:
        token: Pulumi type.
        product: API product.
        create_action: action that makes it.
        parameters: property -> parameter of the create action.
        id_path: where the create answer has the id.
        id_parameter: parameter that names the resource in the other actions.
        describe_action: action that reads it.
        describe_path: where the describe answer has the one object ("" for the answer itself).
        attributes: property -> path in that object.
        delete_action: action that removes it.
        changes: in-place changes.
        constants: parameters that are always sent on create.
        delete_constants: parameters that are always sent on delete.
        id_as: how the id is written in describe and delete parameters.
        tag_kind: ResourceType of TagResources; None where the type has no tags.
        tags_on_create: the create action takes tags itself.
        ready: (path in the object, value) to wait for after create.
        gone: wait until the describe action finds it no more after delete.
        token_on_create: the create action takes a ClientToken.
        values: property -> value in Pulumi -> value in the API, where the two spell a value differently.
    """

    token: str
    product: str
    create_action: str
    parameters: Mapping[str, str]
    id_path: str
    id_parameter: str
    describe_action: str
    describe_path: str
    attributes: Mapping[str, str]
    delete_action: str
    changes: tuple[Change, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)
    delete_constants: Mapping[str, Any] = field(default_factory=dict)
    id_as: Callable[[str], Any] = str
    tag_kind: str | None = None
    tags_on_create: bool = False
    ready: tuple[str, str] | None = None
    gone: bool = False
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    token_on_create: bool = True

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """Make it, tag it, wait for it."""
        asked = {api: encode(self._spelled(name, inputs.get(name))) for name, api in self.parameters.items()}
        tags = inputs.get("tags") or {}
        if self.tags_on_create:
            asked["Tag"] = tag_parameters(tags)
        answer = cloud.call(self.product, self.create_action, {**self.constants, **asked}, once=self.token_on_create)
        identity = str(at(answer, self.id_path))
        if tags and self.tag_kind and not self.tags_on_create:
            set_tags(cloud, self.product, self.tag_kind, identity, {}, tags)
        if self.ready:
            path, value = self.ready
            cloud.wait(self.create_action, lambda: at(self._describe(cloud, identity) or {}, path) == value)
        return identity

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """Describe it."""
        found = self._describe(cloud, identity)
        if found is None:
            return None
        properties = {name: at(found, path) for name, path in self.attributes.items()}
        if self.tag_kind:
            properties["tags"] = tags_of(found)
        return properties

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Send each modify action that covers something that differs."""
        for change in self.changes:
            if any(old.get(name) != new.get(name) for name in change.parameters):
                asked = {api: encode(new.get(name, "")) for name, api in change.parameters.items()}
                cloud.call(self.product, change.action, {self.id_parameter: identity, **change.extra, **asked})
        if self.tag_kind and old.get("tags") != new.get("tags"):
            set_tags(cloud, self.product, self.tag_kind, identity, old.get("tags") or {}, new.get("tags") or {})

    def delete(self, cloud: Cloud, identity: str) -> None:
        """Remove it."""
        try:
            cloud.call(
                self.product, self.delete_action, {self.id_parameter: self.id_as(identity), **self.delete_constants}
            )
        except CloudError as error:
            if not error.not_found:
                raise
        if self.gone:
            cloud.wait(self.delete_action, lambda: self._describe(cloud, identity) is None)

    def _spelled(self, name: str, value: Any) -> Any:
        return self.values.get(name, {}).get(value, value) if isinstance(value, str) else value

    def _describe(self, cloud: Cloud, identity: str) -> Mapping[str, Any] | None:
        try:
            answer = cloud.call(self.product, self.describe_action, {self.id_parameter: self.id_as(identity)})
        except CloudError as error:
            if error.not_found:
                return None
            raise
        found = at(answer, self.describe_path) if self.describe_path else answer
        if isinstance(found, list):
            return found[0] if found else None
        return found if isinstance(found, Mapping) else None


def encode(value: Any) -> Any:
    """A property as a parameter: maps are written as JSON, everything else stays."""
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else value


def json_list(identity: str) -> str:
    """An id as a JSON list, as ECS takes ids."""
    return json.dumps([identity])
