"""Disks and file systems: encrypted, mounted from inside of the cluster only, never replaced or deleted by accident."""

from __future__ import annotations

from collections.abc import Iterator

from policies import kinds
from policies.model import Config, Resource, Rule, Setting, Severity, Stack, Violation, each
from policies.props import Props
from policies.rules.networks import cluster_ranges, inside, parse

_TEXTS = {"type": "array", "items": {"type": "string"}}


def disks_encrypted(resource: Resource, config: Config) -> Iterator[str]:
    """System disks and disks of their own in clear."""
    props = resource.props
    if resource.type == kinds.POOL:
        if not props.flag("encrypted", False):
            yield "the pool's system disks are not encrypted (system_disk.encrypted)"
    elif resource.type == kinds.DISK:
        if not _encrypted(props):
            yield "encrypted is not true"
    elif resource.type in kinds.TEMPLATES:
        if not _encrypted(props.part("systemDisk")):
            yield "systemDisk.encrypted is not true"
    elif not props.flag("systemDiskEncrypted", False):
        yield "systemDiskEncrypted is not true"


def data_disks_encrypted(resource: Resource, config: Config) -> Iterator[str]:
    """Data disks in clear."""
    if resource.type in kinds.MAKERS:
        for disk in resource.props.parts("dataDisks"):
            if not _encrypted(disk):
                yield f"{disk.where}.encrypted is not true"


def _encrypted(disk: Props) -> bool:
    return disk.flag("encrypted", False)


def nas_encrypted(resource: Resource, config: Config) -> Iterator[str]:
    """File systems in clear; that cannot be changed later."""
    if (resource.props.number("encryptType") or 0) not in (1, 2):
        yield "encryptType is not 1 (key of NAS) or 2 (key of the account)"


def nas_network(resource: Resource, config: Config) -> Iterator[str]:
    """Network of a general or extreme file system, which the provider reads back empty."""
    props = resource.props
    if props.text("fileSystemType", "standard") not in ("standard", "extreme"):
        return
    for key in ("vpcId", "vswitchId"):
        if props.has(key):
            yield f"{key} is set; general and extreme NAS has none, so that every update would replace the file system"


def nas_sources(stack: Stack, config: Config) -> Iterator[Violation]:
    """Mounts from outside of the cluster."""
    own = cluster_ranges(stack, config["networks"])

    def check(resource: Resource) -> Iterator[str]:
        props = resource.props
        for key in ("sourceCidrIp", "ipv6SourceCidrIp"):
            if not (text := props.text(key)):
                continue
            source = parse(text, key)
            if inside(source, own):
                continue
            squash = props.text("userAccessType", "no_squash")
            root = ", and root there is root here (no_squash)" if squash == "no_squash" else ""
            if source.prefixlen == 0:
                yield f"everybody ({text}) may mount{root}"
            elif own:
                ranges = ", ".join(str(one) for one in own)
                yield f"{text} is wider than the cluster or outside of it ({ranges}){root}"
            else:
                yield f"could not be verified: the cluster's ranges are not known, so {text} counts as outside{root}"

    yield from each(stack.of(kinds.NAS_RULE), check)


def kept(resource: Resource, config: Config) -> Iterator[str]:
    """What holds data or state and is not protected."""
    if resource.type == kinds.FILE_SYSTEM and not resource.protect:
        yield "the file system is not protected: a change could delete or replace it, and the data with it"
    if resource.type == kinds.INSTANCE and kinds.role(resource) == "management" and not resource.protect:
        yield "the management node is not protected: a change could delete or replace it, and the queue with it"


RULES = (
    Rule(
        name="hpc-disks-encrypted",
        code="HPC746",
        severity=Severity.MEDIUM,
        types=(kinds.POOL, kinds.DISK, *kinds.MAKERS),
        checks=(disks_encrypted, data_disks_encrypted),
    ),
    Rule(
        name="hpc-nas-encrypted",
        code="HPC747",
        severity=Severity.MEDIUM,
        types=(kinds.FILE_SYSTEM,),
        checks=(nas_encrypted,),
    ),
    Rule(
        name="hpc-nas-sources",
        code="HPC748",
        severity=Severity.CRITICAL,
        types=(kinds.NAS_RULE,),
        settings={"networks": Setting(_TEXTS, [], "Further address ranges that may mount, such as an adopted VPC's.")},
        stack_check=nas_sources,
    ),
    Rule(
        name="hpc-nas-without-network",
        code="HPC749",
        severity=Severity.HIGH,
        types=(kinds.FILE_SYSTEM,),
        checks=(nas_network,),
    ),
    Rule(
        name="hpc-keep-data",
        code="HPC750",
        severity=Severity.CRITICAL,
        types=(kinds.FILE_SYSTEM, kinds.INSTANCE),
        checks=(kept,),
    ),
)
