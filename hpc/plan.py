"""What a stack would make, without an engine, a provider or an account: the program runs against a recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc.catalog import Catalog, load_catalog
from hpc.findings import FindingsError, has_errors
from hpc.spec.cluster import ClusterSpec

if TYPE_CHECKING:
    from components.recording import Registered

#: Inputs that tell a reader most about a resource, the first that are there are shown.
_TELLING = (
    "instanceType",
    "instanceTypes",
    "charge",
    "instanceChargeType",
    "spotStrategy",
    "min",
    "max",
    "interconnect",
    "cidrBlock",
    "zoneId",
    "ipProtocol",
    "portRange",
    "cidrIp",
    "sourceCidrIp",
    "storageType",
    "capacity",
    "strategy",
    "bandwidth",
    "roleName",
    "policyName",
    "keyPairName",
    "create",
    "worstHourly",
)


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """A resource that a stack would make.

    Attributes:
        type: type token.
        name: logical name.
        inputs: plain values; `(known after up)` and `(secret)` stand for what cannot be shown.
        protect: deleting and replacing it is refused.
        retain: it outlives the cluster.
        component: it only groups others.
    """

    type: str
    name: str
    inputs: Mapping[str, Any]
    protect: bool
    retain: bool
    component: bool

    @property
    def summary(self) -> str:
        """What matters of it, one line."""
        shown = [f"{key} {_text(self.inputs[key])}" for key in _TELLING if _simple(self.inputs.get(key))]
        marks = [word for word, there in (("protected", self.protect), ("kept on destroy", self.retain)) if there]
        fallback = [str(self.inputs["description"])] if not shown and "description" in self.inputs else []
        return ", ".join([*shown[:6], *fallback, *marks])

    def as_dict(self) -> dict[str, Any]:
        """The resource as plain JSON-ready values."""
        return {
            "type": self.type,
            "name": self.name,
            "component": self.component,
            "protect": self.protect,
            "retain": self.retain,
            "summary": self.summary,
            "inputs": dict(self.inputs),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What a stack would make.

    Attributes:
        spec: what it was made from.
        resources: each component followed by what it makes.
    """

    spec: ClusterSpec
    resources: tuple[PlannedResource, ...]


def plan_stack(stack_file: Path) -> Plan:
    """Plan the stack of a file.

    Raises:
        FindingsError: the stack is refused.
        HpcError: the file cannot be read.
    """
    from hpc.spec.load import load_stack_file

    loaded = load_stack_file(stack_file)
    if loaded.spec is None or has_errors(loaded.findings):
        raise FindingsError(loaded.findings)
    return plan_cluster(loaded.spec)


def plan_cluster(spec: ClusterSpec, catalog: Catalog | None = None) -> Plan:
    """Plan a cluster.

    Raises:
        FindingsError: the cluster is refused; nothing is planned.
    """
    # Pulumi and the provider's SDK take half a second to load: only who plans pays for them.
    from components.cluster import Cluster, ClusterArgs
    from components.recording import record

    known = catalog or load_catalog()

    def program() -> None:
        Cluster(spec.name, ClusterArgs(spec, known))

    recording = record(program, invokes=catalog_invokes(known), stack="plan")
    return Plan(spec, tuple(_planned(resource) for resource in _by_component(recording.resources)))


def catalog_invokes(catalog: Catalog) -> Callable[[str, Mapping[str, Any]], dict[str, Any]]:
    """Answers the program's look-up of images from the catalog: the build that it knows of, not the newest."""

    def answer(token: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if token != "alicloud:ecs/getImages:getImages":  # noqa: S105  (token of a function)
            raise NotImplementedError(f"the offline plan cannot answer {token}")
        wanted = (arguments.get("nameRegex"), arguments.get("architecture"))
        ids = [image.image_id for image in catalog.images() if (image.name_regex, image.architecture) == wanted]
        return {"ids": ids, "images": []}

    return answer


def _by_component(resources: Sequence[Registered]) -> Iterator[Registered]:
    known = {resource.urn for resource in resources}
    children: dict[str, list[Registered]] = {}
    for resource in resources:
        children.setdefault(resource.parent if resource.parent in known else "", []).append(resource)

    def below(urn: str) -> Iterator[Registered]:
        for resource in children.get(urn, ()):
            yield resource
            yield from below(resource.urn)

    return below("")


def _planned(resource: Registered) -> PlannedResource:
    return PlannedResource(
        type=resource.type,
        name=resource.name,
        inputs={key: _shown(value) for key, value in resource.inputs.items()},
        protect=resource.protect,
        retain=resource.retain_on_delete,
        component=not resource.custom,
    )


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else repr(value)


def _simple(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_simple(item) for item in value)
    return isinstance(value, str | int | float) and not isinstance(value, bool) and not str(value).startswith("(")


def _text(value: Any) -> str:
    return " ".join(str(item) for item in value) if isinstance(value, list) else str(value)
