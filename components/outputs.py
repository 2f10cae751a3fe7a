"""What a person needs to know of a cluster that is up: how to log in, what is mounted where, what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from hpc.cost import Estimate
from hpc.spec.cluster import ClusterSpec
from hpc.spec.storage import StorageKind

_EXPORT = {StorageKind.GENERAL: "/", StorageKind.EXTREME: "/share"}


@dataclass(frozen=True, slots=True)
class OutputSources:
    """What the outputs are made of.

    Attributes:
        vpc_id: of the cluster.
        management: private addresses.
        login: addresses at which people reach the login nodes.
        servers: mount target by mount point.
        launch_template_ids: by pool.
        private_key: of the program's own SSH key; secret.
        user: administrator's account on the nodes.
    """

    vpc_id: pulumi.Output[str]
    management: tuple[pulumi.Output[str], ...]
    login: tuple[pulumi.Output[str], ...]
    servers: Mapping[str, pulumi.Output[str]]
    launch_template_ids: Mapping[str, pulumi.Output[str]]
    private_key: pulumi.Output[str]
    user: str


def cluster_outputs(spec: ClusterSpec, estimate: Estimate, sources: OutputSources) -> dict[str, Any]:
    """Outputs: `ssh`, `login`, `management`, `mounts`, `pools`, `price`, `vpc_id`, `ssh_private_key` (secret)."""
    exports = {entry.mount: _EXPORT[entry.kind] for entry in spec.storage}
    totals = estimate.totals
    return {
        "ssh": pulumi.Output.concat("ssh ", sources.user, "@", sources.login[0]) if sources.login else "no login node",
        "login": list(sources.login),
        "management": list(sources.management),
        "mounts": {
            mount: pulumi.Output.concat(server, ":", exports[mount]) for mount, server in sources.servers.items()
        },
        "pools": {
            pool.name: {
                "partition": pool.name,
                "instance_types": list(pool.instance_types),
                "min": pool.min,
                "max": pool.max,
                "charge": pool.charge.value,
                "launch_template": sources.launch_template_ids[pool.name],
            }
            for pool in spec.pools
        },
        "price": {
            "currency": estimate.currency,
            "hour_at_zero": str(totals.zero),
            "hour_at_worst": str(totals.worst),
            "expected_month": str(totals.month),
            "complete": estimate.complete,
        },
        "vpc_id": sources.vpc_id,
        "ssh_private_key": sources.private_key,
    }
