"""Shared storage: NAS file systems, who may mount them, and their mount targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

import pulumi

from components.sdk import nas
from hpc.spec.addresses import vswitch_cidrs
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import cluster_tags
from hpc.spec.storage import StorageKind, StorageSpec, StorageType

#: Names of the NAS API.
_FILE_SYSTEM_TYPE = {StorageKind.GENERAL: "standard", StorageKind.EXTREME: "extreme"}
_STORAGE_TYPE = {
    StorageType.CAPACITY: "Capacity",
    StorageType.PERFORMANCE: "Performance",
    StorageType.PREMIUM: "Premium",
    StorageType.STANDARD: "standard",
    StorageType.ADVANCE: "advance",
}


@dataclass(frozen=True, slots=True)
class StorageArgs:
    """Arguments of `Storage`.

    Attributes:
        spec: the cluster.
        vpc_id: VPC of the mount targets.
        vswitch_ids: vSwitch of each zone.
    """

    spec: ClusterSpec
    vpc_id: pulumi.Input[str]
    vswitch_ids: Mapping[str, pulumi.Input[str]]


class Storage(pulumi.ComponentResource):
    """File systems of a cluster.

    A file system is protected and kept when the cluster is destroyed, as the stack file says. `vpc_id` and `vswitch_id`
    of a file system stay unset: general and extreme NAS do not have them, and the provider would replace the file
    system for ever.

    Attributes:
        servers: domain of the mount target by mount point, in the order of the stack file.
        file_system_ids: id by mount point.
    """

    servers: Mapping[str, pulumi.Output[str]]
    file_system_ids: Mapping[str, pulumi.Output[str]]

    def __init__(self, name: str, args: StorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec = args.spec
        super().__init__("hpc:storage:Storage", name, {"mounts": [entry.mount for entry in spec.storage]}, opts)
        kinds = dict.fromkeys(entry.kind for entry in spec.storage)
        groups = {kind: self._access_group(name, kind, spec) for kind in kinds}
        for kind, group in groups.items():
            self._access_rules(name, kind, group, spec)
        servers: dict[str, pulumi.Output[str]] = {}
        ids: dict[str, pulumi.Output[str]] = {}
        for entry in spec.storage:
            # A colon cannot be in a mount point, so that two of them never share a name.
            label = ":".join(PurePosixPath(entry.mount).parts[1:])
            ids[entry.mount] = self._file_system(f"{name}-{label}", entry, spec)
            target = nas.MountTarget(
                f"{name}-{label}-mount-target",
                file_system_id=ids[entry.mount],
                access_group_name=groups[entry.kind].access_group_name,
                network_type="Vpc",
                vpc_id=args.vpc_id,
                vswitch_id=args.vswitch_ids[_zone(entry, spec)],
                opts=pulumi.ResourceOptions(parent=self),
            )
            servers[entry.mount] = target.mount_target_domain
        self.servers, self.file_system_ids = servers, ids
        self.register_outputs({"servers": servers, "fileSystemIds": ids})

    def _access_group(self, name: str, kind: StorageKind, spec: ClusterSpec) -> nas.AccessGroup:
        return nas.AccessGroup(
            f"{name}-access-{kind}",
            access_group_name=f"hpc-{spec.name}-{kind}",
            access_group_type="Vpc",
            description=f"HPC cluster {spec.name}: its own vSwitches",
            file_system_type=_FILE_SYSTEM_TYPE[kind],
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _access_rules(self, name: str, kind: StorageKind, group: nas.AccessGroup, spec: ClusterSpec) -> None:
        for zone, cidr in mount_cidrs(spec).items():
            nas.AccessRule(
                f"{name}-access-{kind}-{zone}",
                access_group_name=group.access_group_name,
                file_system_type=_FILE_SYSTEM_TYPE[kind],
                source_cidr_ip=cidr,
                rw_access_type="RDWR",
                # The bootstrap scripts make folders for users as root.
                user_access_type="no_squash",
                priority=1,
                opts=pulumi.ResourceOptions(parent=self, deleted_with=group),
            )

    def _file_system(self, name: str, entry: StorageSpec, spec: ClusterSpec) -> pulumi.Output[str]:
        if entry.file_system_id:
            return pulumi.Output.from_input(entry.file_system_id)
        extreme = entry.kind is StorageKind.EXTREME
        made = nas.FileSystem(
            name,
            description=f"{spec.name}:{entry.mount}",
            protocol_type="NFS",
            file_system_type=_FILE_SYSTEM_TYPE[entry.kind],
            storage_type=_STORAGE_TYPE[entry.resolved_type],
            capacity=entry.capacity_gib if extreme else None,
            zone_id=_zone(entry, spec) if extreme else entry.zone,
            encrypt_type=1 if entry.encrypted else 0,
            tags=cluster_tags(spec, "storage"),
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=spec.protect,
                retain_on_delete=entry.retain,
                custom_timeouts=pulumi.CustomTimeouts(create="20m"),
            ),
        )
        return made.id


def mount_cidrs(spec: ClusterSpec) -> dict[str, str]:
    """Networks from which the file systems may be mounted, by zone.

    The range of an adopted vSwitch is known only where the stack file gives it; the VPC's own range stands in for it.
    """
    known = vswitch_cidrs(spec)
    cidrs = {}
    for zone in spec.zones:
        guessed = zone in spec.network.vswitch_ids and zone not in spec.network.vswitches
        cidrs[zone] = str(spec.network.cidr if guessed else known[zone])
    first_zone = {cidr: zone for zone, cidr in reversed(cidrs.items())}
    return {zone: cidr for zone, cidr in cidrs.items() if first_zone[cidr] == zone}


def _zone(entry: StorageSpec, spec: ClusterSpec) -> str:
    return entry.zone or spec.zones[0]
