"""What the nodes have to know of the resources: ids, addresses and mount targets, once they exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from hpc.slurm.facts import Facts, MountFact, NodeFact, PoolFact
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import login_names, management_names


@dataclass(frozen=True, slots=True)
class FactSources:
    """Outputs that the facts are made of.

    Attributes:
        management, login: private addresses in the order of the host names.
        servers: mount target by mount point.
        vswitch_ids: by zone.
        security_group_id: group of the compute nodes.
        ram_role: role of the management nodes.
        launch_template_ids: by pool.
        deployment_set_ids: by pool and zone.
        image_ids: by pool, plain.
        protocol: `https`, or `http` for a local cloud, which answers its hosts under the cloud's own names.
    """

    management: tuple[pulumi.Output[str], ...]
    login: tuple[pulumi.Output[str], ...]
    servers: Mapping[str, pulumi.Output[str]]
    vswitch_ids: Mapping[str, pulumi.Output[str]]
    security_group_id: pulumi.Output[str]
    ram_role: pulumi.Output[str]
    launch_template_ids: Mapping[str, pulumi.Output[str]]
    deployment_set_ids: Mapping[str, Mapping[str, pulumi.Output[str]]]
    image_ids: Mapping[str, str]
    protocol: str


def cluster_facts(spec: ClusterSpec, sources: FactSources) -> pulumi.Output[Facts]:
    """The facts, known once all resources exist."""
    return pulumi.Output.all(
        management=list(sources.management),
        login=list(sources.login),
        servers=dict(sources.servers),
        vswitches=dict(sources.vswitch_ids),
        security_group_id=sources.security_group_id,
        ram_role=sources.ram_role,
        templates=dict(sources.launch_template_ids),
        sets={pool: dict(sets) for pool, sets in sources.deployment_set_ids.items()},
    ).apply(lambda known: _facts(spec, sources, known))


def _facts(spec: ClusterSpec, sources: FactSources, known: Mapping[str, Any]) -> Facts:
    def nodes(names: tuple[str, ...], addresses: list[str]) -> tuple[NodeFact, ...]:
        return tuple(NodeFact(name, address) for name, address in zip(names, addresses, strict=True))

    return Facts(
        region=spec.region,
        vpc_cidr=str(spec.network.cidr),
        management=nodes(management_names(spec), known["management"]),
        login=nodes(login_names(spec), known["login"]),
        mounts=tuple(MountFact(entry.mount, known["servers"][entry.mount]) for entry in spec.storage),
        vswitches={zone: known["vswitches"][zone] for zone in spec.zones},
        security_group_id=known["security_group_id"],
        ram_role=known["ram_role"],
        pools={
            pool.name: PoolFact(known["templates"][pool.name], sources.image_ids[pool.name], known["sets"][pool.name])
            for pool in spec.pools
        },
        protocol=sources.protocol,
    )
