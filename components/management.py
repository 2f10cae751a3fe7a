"""Management nodes: slurmctld, slurmdbd, the database and the elastic daemon; a second one takes over if asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from components.node import NodeArgs, long_lived_node
from components.sdk import ecs
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import management_names


@dataclass(frozen=True, slots=True)
class ManagementArgs:
    """Arguments of `Management`.

    Attributes:
        spec: the cluster.
        image_id: image that the nodes boot at first.
        vswitch_ids: vSwitch of each zone.
        security_group_ids: groups of the nodes.
        key_pair_name: key of the nodes.
        ram_role_name: role whose credentials the elastic daemon uses.
        after: resources that must be there before the nodes, and that are deleted after them.
    """

    spec: ClusterSpec
    image_id: str
    vswitch_ids: Mapping[str, pulumi.Input[str]]
    security_group_ids: tuple[pulumi.Input[str], ...]
    key_pair_name: pulumi.Input[str]
    ram_role_name: pulumi.Input[str]
    after: tuple[pulumi.Resource, ...] = ()


class Management(pulumi.ComponentResource):
    """The management node and, with `backup`, a second one in another zone.

    Attributes:
        instances: the instances, the primary first.
        addresses: their private addresses.
    """

    instances: tuple[ecs.Instance, ...]
    addresses: tuple[pulumi.Output[str], ...]

    def __init__(self, name: str, args: ManagementArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec = args.spec
        super().__init__(
            "hpc:management:Management",
            name,
            {"instanceType": spec.management.instance_type, "backup": spec.management.backup},
            opts,
        )
        instances = []
        hosts = management_names(spec)
        for index, (host, zone) in enumerate(zip(hosts, management_zones(spec), strict=True)):
            instance = long_lived_node(
                f"{name}-{index}",
                NodeArgs(
                    spec=spec,
                    node=spec.management,
                    role="management",
                    host=host,
                    image_id=args.image_id,
                    vswitch_id=args.vswitch_ids[zone],
                    security_group_ids=args.security_group_ids,
                    key_pair_name=args.key_pair_name,
                    protect=spec.protect,
                    after=args.after,
                ),
                parent=self,
            )
            ecs.RamRoleAttachment(
                f"{name}-{index}-role",
                instance_id=instance.id,
                ram_role_name=args.ram_role_name,
                opts=pulumi.ResourceOptions(parent=self, deleted_with=instance),
            )
            instances.append(instance)
        self.instances = tuple(instances)
        self.addresses = tuple(instance.primary_ip_address for instance in instances)
        self.register_outputs({"addresses": list(self.addresses)})


def management_zones(spec: ClusterSpec) -> tuple[str, ...]:
    """Zone of each management node; a backup lives in another zone than the primary wherever there are two."""
    first = spec.management.zone or spec.zones[0]
    if not spec.management.backup:
        return (first,)
    return (first, next((zone for zone in spec.zones if zone != first), first))
