"""A compute pool: the launch template of its nodes and, if asked, a deployment set in each of its zones.

The nodes themselves are no Pulumi resources: the elastic daemon starts them from the template and passes zone, vSwitch,
security group, type and network interface, since the template cannot ask for a traffic mode.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.sdk import ecs
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import cluster_tags
from hpc.spec.pool import Placement, PoolSpec

_STRATEGY = {Placement.LOW_LATENCY: "LowLatency", Placement.AVAILABILITY: "Availability"}


@dataclass(frozen=True, slots=True)
class PoolArgs:
    """Arguments of `Pool`.

    Attributes:
        spec: the cluster.
        pool: the pool.
        properties: what policies judge it by (`components.properties`).
        image_id: image of the nodes.
        key_pair_name: key of the nodes.
        ram_role_name: role of the nodes.
        user_data: shell script or cloud-config of the nodes, not encoded; nothing secret may be in it.
    """

    spec: ClusterSpec
    pool: PoolSpec
    properties: Mapping[str, Any]
    image_id: str
    key_pair_name: pulumi.Input[str]
    ram_role_name: pulumi.Input[str]
    user_data: pulumi.Input[str]


class Pool(pulumi.ComponentResource):
    """A compute pool.

    Attributes:
        launch_template_id: passed to RunInstances.
        deployment_set_ids: by zone; empty without placement.
    """

    launch_template_id: pulumi.Output[str]
    deployment_set_ids: Mapping[str, pulumi.Output[str]]

    def __init__(self, name: str, args: PoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("hpc:pool:Pool", name, dict(args.properties), opts)
        self.launch_template_id = self._template(name, args).id
        self.deployment_set_ids = self._deployment_sets(name, args)
        self.register_outputs(
            {"launchTemplateId": self.launch_template_id, "deploymentSetIds": dict(self.deployment_set_ids)}
        )

    def _template(self, name: str, args: PoolArgs) -> ecs.EcsLaunchTemplate:
        spec, pool = args.spec, args.pool
        tags = cluster_tags(spec, "compute", pool.name)
        limit = pool.spot_price_limit if pool.uses_spot else None
        strategy = "NoSpot" if not pool.uses_spot else "SpotAsPriceGo" if limit is None else "SpotWithPriceLimit"
        user_data = pulumi.Output.from_input(args.user_data).apply(_encoded)
        settings: dict[str, Any] = {
            "image_id": args.image_id,
            "instance_type": pool.instance_types[0],
            "instance_charge_type": "PostPaid",
            "spot_strategy": strategy,
            "spot_price_limit": float(limit) if limit is not None else None,
            "spot_duration": str(pool.spot_duration) if pool.uses_spot else None,
            "key_pair_name": args.key_pair_name,
            "ram_role_name": args.ram_role_name,
            "http_endpoint": "enabled",
            "http_tokens": "required",
            "internet_max_bandwidth_out": 0,
            "user_data": user_data,
            "tags": tags,
        }
        return ecs.EcsLaunchTemplate(
            f"{name}-template",
            launch_template_name=f"hpc-{spec.name}-{pool.name}",
            description=f"HPC cluster {spec.name}: nodes of pool {pool.name}",
            system_disk=ecs.EcsLaunchTemplateSystemDiskArgs(
                category="cloud_essd",
                performance_level=pool.system_disk.performance_level.value,
                size=pool.system_disk.size_gib,
                encrypted=pool.system_disk.encrypted,
                delete_with_instance=True,
                # When anything else changes, the provider writes a new version of the template without `encrypted`
                # (terraform-provider-alicloud 1.285.0, update of alicloud_ecs_launch_template): the disks of new nodes
                # would be in clear. So the disk changes with everything else.
                description=pulumi.Output.all(**settings).apply(
                    lambda known: f"{spec.name} {pool.name} {_checksum(known)}"
                ),
            ),
            # Instances start from the default version, so that a change takes effect with the next node.
            update_default_version_number=True,
            template_tags=tags,
            opts=pulumi.ResourceOptions(parent=self),
            **settings,
        )

    def _deployment_sets(self, name: str, args: PoolArgs) -> dict[str, pulumi.Output[str]]:
        strategy = _STRATEGY.get(args.pool.placement)
        if strategy is None:
            return {}
        return {
            zone: ecs.EcsDeploymentSet(
                f"{name}-placement-{zone}",
                deployment_set_name=f"hpc-{args.spec.name}-{args.pool.name}-{zone}",
                description=f"HPC cluster {args.spec.name}: pool {args.pool.name} in {zone}",
                strategy=strategy,
                opts=pulumi.ResourceOptions(parent=self),
            ).id
            for zone in args.spec.pool_zones(args.pool)
        }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _checksum(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
