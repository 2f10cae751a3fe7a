"""What is known only once resources exist: addresses, mount targets, ids. Filled from outputs, read on the nodes."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class NodeFact:
    """A long-lived node: its host name and private address."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class MountFact:
    """A mount target of a NAS file system.

    Attributes:
        path: folder on every node, as in the stack file.
        server: domain of the mount target.
    """

    path: str
    server: str


@dataclass(frozen=True, slots=True)
class PoolFact:
    """Ids of what a pool is made of.

    Attributes:
        launch_template_id: `lt-...`, passed to RunInstances.
        image_id: image the pool boots.
        deployment_set_ids: by zone id; empty without placement.
    """

    launch_template_id: str
    image_id: str
    deployment_set_ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """Run-time facts of one cluster.

    Attributes:
        region: region id.
        vpc_cidr: address range of the VPC.
        management, login: in the order of their names; the first management node is the primary controller.
        mounts: one per storage entry of the stack file, in its order.
        vswitches: zone id to vSwitch id.
        security_group_id: group of the compute nodes.
        ram_role: RAM role of the management nodes, whose credentials the elastic daemon uses.
        pools: by name.
        endpoints: endpoint (`host:port`) by product where it is not the cloud's own, for instance of a local cloud.
        protocol: `https`, or `http` for a local cloud.
    """

    region: str
    vpc_cidr: str
    management: tuple[NodeFact, ...]
    login: tuple[NodeFact, ...]
    mounts: tuple[MountFact, ...]
    vswitches: dict[str, str]
    security_group_id: str
    ram_role: str
    pools: dict[str, PoolFact]
    endpoints: dict[str, str] = field(default_factory=dict)
    protocol: str = "https"

    def to_json(self) -> str:
        """The facts as JSON, keys sorted, so that equal facts are equal text."""
        return json.dumps(asdict(self), sort_keys=True, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Facts:
        """Read what `to_json` wrote."""
        raw: dict[str, Any] = json.loads(text)
        return cls(
            region=raw["region"],
            vpc_cidr=raw["vpc_cidr"],
            management=tuple(NodeFact(**node) for node in raw["management"]),
            login=tuple(NodeFact(**node) for node in raw["login"]),
            mounts=tuple(MountFact(**mount) for mount in raw["mounts"]),
            vswitches=dict(raw["vswitches"]),
            security_group_id=raw["security_group_id"],
            ram_role=raw["ram_role"],
            pools={name: PoolFact(**pool) for name, pool in raw["pools"].items()},
            endpoints=dict(raw.get("endpoints", {})),
            protocol=raw.get("protocol", "https"),
        )

    def hosts(self) -> str:
        """Lines of a hosts file for the long-lived nodes."""
        return "".join(f"{node.address} {node.name}\n" for node in (*self.management, *self.login))

    def shell(self) -> str:
        """The part that the scripts need, as shell assignments (`facts.env`)."""
        values = {
            "HPC_REGION": self.region,
            "HPC_VPC_CIDR": self.vpc_cidr,
            "HPC_MANAGEMENT_ADDRESSES": " ".join(node.address for node in self.management),
            "HPC_LOGIN_ADDRESSES": " ".join(node.address for node in self.login),
        }
        return "".join(f"{key}={shlex.quote(value)}\n" for key, value in values.items())
