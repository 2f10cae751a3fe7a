"""What keeps compute nodes from running forgotten or in the wrong place: tags, release, charge, types, regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from policies import kinds
from policies.model import Config, Resource, Rule, Setting, Severity
from policies.props import UNKNOWN

_TEXTS = {"type": "array", "items": {"type": "string"}}

#: Types of this project that have tags.
TAGGED = (
    *kinds.MAKERS,
    kinds.SCALING_GROUP,
    kinds.INTERFACE,
    kinds.DISK,
    kinds.GROUP,
    kinds.FILE_SYSTEM,
    kinds.VPC,
    kinds.VSWITCH,
    kinds.RAM_POLICY,
    kinds.RAM_ROLE,
    kinds.KEY_PAIR,
    kinds.ADDRESS,
    kinds.NAT,
)

#: Inputs that hold tags, by type; `tags` for all others. Tags of volumes and of the template itself count, too: an
#: organisation's tag policy looks at each.
_TAG_INPUTS = {
    kinds.INSTANCE: ("tags", "volumeTags"),
    kinds.TEMPLATE: ("tags", "templateTags"),
    kinds.OLD_TEMPLATE: ("tags", "templateTags"),
}


def tags_given(resource: Resource, config: Config) -> Iterator[str]:
    """Tags that are missing or empty."""
    for key in _TAG_INPUTS.get(resource.type, ("tags",)):
        tags = resource.props.part(key)
        missing = [tag for tag in config["required"] if not tags.has(tag)]
        if missing:
            yield f"{key} lacks {', '.join(missing)}"


def add_tags(resource: Resource, config: Config) -> Mapping[str, Any] | None:
    """Add the tags for which the configuration has a value. A tag that is there, or not known yet, is left alone."""
    changed: dict[str, Any] = {}
    for key in _TAG_INPUTS.get(resource.type, ("tags",)):
        tags = resource.props.values.get(key)
        if tags is UNKNOWN or not isinstance(tags, Mapping | None):
            continue
        wanted = {tag: config["defaults"].get(tag) for tag in config["required"]}
        added = {tag: value for tag, value in wanted.items() if value and not (tags or {}).get(tag)}
        if added:
            changed[key] = {**(tags or {}), **added}
    return changed or None


def not_prepaid(resource: Resource, config: Config) -> Iterator[str]:
    """Compute nodes by subscription, which cannot be released."""
    props = resource.props
    if resource.type == kinds.POOL:
        if props.text("charge") == "prepaid":
            yield "the pool is charged by subscription, which cannot be released"
    elif resource.type == kinds.QUEUE:
        for node in props.parts("computeNodes"):
            if node.text("instanceChargeType").lower() == "prepaid":
                yield f"{node.where}.instanceChargeType is PrePaid"
    elif kinds.is_compute(resource) and props.text("instanceChargeType").lower() == "prepaid":
        yield "instanceChargeType is PrePaid: a subscription cannot be released when the jobs are done"


def released(resource: Resource, config: Config) -> Iterator[str]:
    """Compute nodes that nobody releases."""
    props = resource.props
    if resource.type == kinds.INSTANCE:
        if kinds.is_compute(resource) and not props.has("autoReleaseTime"):
            yield "a compute node without autoReleaseTime runs until somebody thinks of it"
        return
    if resource.type == kinds.QUEUE:
        if not props.flag("enableScaleIn", False):
            yield "enableScaleIn is not true: idle nodes are never released"
        return
    for key, limit, meaning in (
        ("idleSeconds", config["maxIdleSeconds"], "idle time"),
        ("autoReleaseSeconds", config["maxAutoReleaseSeconds"], "release time"),
    ):
        seconds = props.number(key)
        if seconds is None or seconds <= 0:
            yield f"the pool has no {meaning} ({key}): forgotten nodes are never released"
        elif seconds > limit:
            yield f"the pool's {meaning} of {seconds:g} s is above {limit:g} s ({key})"
    if config["requireMaxLifetime"] and props.number("maxLifetimeSeconds") is None:
        yield "the pool has no longest lifetime (max_lifetime)"


def allowed_types(resource: Resource, config: Config) -> Iterator[str]:
    """Types that are not on the list."""
    allowed, denied = config["allowed"], config["denied"]
    for name in dict.fromkeys(kinds.instance_types(resource)):
        if any(fnmatchcase(name, pattern) for pattern in denied):
            yield f"{name} is denied here"
        elif allowed and not any(fnmatchcase(name, pattern) for pattern in allowed):
            yield f"{name} is none of the allowed types ({', '.join(allowed)})"


def allowed_regions(resource: Resource, config: Config) -> Iterator[str]:
    """Regions that are not on the list."""
    regions = config["allowed"]
    if not regions:
        return
    props = resource.props
    if resource.region and resource.region not in regions:
        yield f"its provider works in {resource.region}; allowed: {', '.join(regions)}"
    if resource.type in (kinds.CLUSTER, kinds.POOL) and (region := props.text("region")) not in regions:
        yield f"region {region or '(none)'}; allowed: {', '.join(regions)}"
    for key in ("zoneId", "availabilityZone"):
        zone = props.text(key)
        if zone and not any(zone.startswith(f"{region}-") for region in regions):
            yield f"{key} {zone} is in none of the allowed regions ({', '.join(regions)})"


RULES = (
    Rule(
        name="hpc-tags",
        code="HPC751",
        severity=Severity.MEDIUM,
        types=TAGGED,
        settings={
            "required": Setting(_TEXTS, [kinds.TAG_CLUSTER, kinds.TAG_ROLE], "Tags that every resource must have."),
            "defaults": Setting(
                {"type": "object", "additionalProperties": {"type": "string"}},
                {},
                "Values that are added where a tag is missing and the level is `remediate`.",
            ),
        },
        checks=(tags_given,),
        remedy=add_tags,
    ),
    Rule(
        name="hpc-compute-not-prepaid",
        code="HPC752",
        severity=Severity.HIGH,
        types=(kinds.POOL, kinds.INSTANCE, *kinds.TEMPLATES, kinds.QUEUE),
        checks=(not_prepaid,),
    ),
    Rule(
        name="hpc-compute-released",
        code="HPC753",
        severity=Severity.HIGH,
        types=(kinds.POOL, kinds.INSTANCE, kinds.QUEUE),
        settings={
            "maxIdleSeconds": Setting({"type": "number", "minimum": 0}, 3600, "Longest idle time of a pool, s."),
            "maxAutoReleaseSeconds": Setting(
                {"type": "number", "minimum": 0}, 86400, "Furthest release time of a pool's nodes, s."
            ),
            "requireMaxLifetime": Setting({"type": "boolean"}, False, "Whether pools need a longest lifetime."),
        },
        checks=(released,),
    ),
    Rule(
        name="hpc-instance-types",
        code="HPC754",
        severity=Severity.MEDIUM,
        types=(kinds.POOL, *kinds.MAKERS, kinds.SCALING_GROUP, kinds.PROVISIONING, kinds.QUEUE),
        settings={
            "allowed": Setting(_TEXTS, [], "Patterns of allowed types, `ecs.c8*`; all where the list is empty."),
            "denied": Setting(_TEXTS, [], "Patterns of types that are refused in any case."),
        },
        checks=(allowed_types,),
    ),
    Rule(
        name="hpc-regions",
        code="HPC755",
        severity=Severity.MEDIUM,
        types=(kinds.CLUSTER, kinds.POOL, *TAGGED),
        settings={"allowed": Setting(_TEXTS, [], "Regions that may be used; all where the list is empty.")},
        checks=(allowed_regions,),
    ),
)
