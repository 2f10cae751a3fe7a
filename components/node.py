"""An instance that lives as long as the cluster: what management and login nodes have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.sdk import ecs
from hpc.slurm.userdata import node_user_data
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import TAG_NODE, cluster_tags
from hpc.spec.nodes import LoginSpec, ManagementSpec, NodeCharge

#: Lengths of an automatic renewal that ECS knows, in months.
_RENEWALS = (12, 6, 3, 2, 1)


@dataclass(frozen=True, slots=True)
class NodeArgs:
    """Arguments of `long_lived_node`.

    Attributes:
        spec: the cluster.
        node: what the stack file says of the role.
        role: `management` or `login`.
        host: host name.
        image_id: image it boots at first.
        vswitch_id: where it lives.
        security_group_ids: its groups.
        key_pair_name: its key.
        protect: refuse to delete or replace it.
        after: resources that must be there before it, and that are deleted after it.
    """

    spec: ClusterSpec
    node: ManagementSpec | LoginSpec
    role: str
    host: str
    image_id: str
    vswitch_id: pulumi.Input[str]
    security_group_ids: Sequence[pulumi.Input[str]]
    key_pair_name: pulumi.Input[str]
    protect: bool
    after: tuple[pulumi.Resource, ...] = ()


def long_lived_node(name: str, args: NodeArgs, parent: pulumi.Resource) -> ecs.Instance:
    """Make the instance. User data only closes its doors; the bootstrap is a command over SSH, which can run again.

    Args:
        name: logical name.
        args: see `NodeArgs`.
        parent: component that it belongs to.
    """
    node = args.node
    prepaid = node.charge is NodeCharge.PREPAID
    tags = {**cluster_tags(args.spec, args.role), TAG_NODE: args.host}
    return ecs.Instance(
        name,
        instance_name=f"{args.spec.name}-{args.host}",
        host_name=args.host,
        description=f"HPC cluster {args.spec.name}: {args.role} node",
        instance_type=node.instance_type,
        image_id=args.image_id,
        vswitch_id=args.vswitch_id,
        security_groups=list(args.security_group_ids),
        key_name=args.key_pair_name,
        user_data=node_user_data(args.spec),
        system_disk_category="cloud_essd",
        system_disk_size=node.system_disk.size_gib,
        system_disk_performance_level=node.system_disk.performance_level.value,
        system_disk_encrypted=node.system_disk.encrypted,
        http_endpoint="enabled",
        http_tokens="required",
        internet_max_bandwidth_out=0,
        instance_charge_type="PrePaid" if prepaid else "PostPaid",
        period=node.period_months if prepaid else None,
        period_unit="Month" if prepaid else None,
        renewal_status=("AutoRenewal" if node.auto_renew else "NotRenewal") if prepaid else None,
        auto_renew_period=_renewal(node.period_months) if prepaid and node.auto_renew else None,
        # A subscription is turned into pay-as-you-go before it is deleted; only where deleting is allowed at all.
        force_delete=True if prepaid and not args.protect else None,
        # ECS has this for pay-as-you-go instances only.
        deletion_protection=None if prepaid else args.protect,
        tags=tags,
        volume_tags=tags,
        opts=pulumi.ResourceOptions(
            parent=parent,
            protect=args.protect,
            depends_on=list(args.after),
            # A newer public image must not replace the system disk of a node that holds state, and new user data would
            # reboot it without being run.
            ignore_changes=["imageId", "userData"],
        ),
    )


def _renewal(months: int) -> int:
    return next(length for length in _RENEWALS if length <= months)
