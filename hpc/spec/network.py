"""The network of a cluster: one VPC, a vSwitch per zone, pinned ports, who may log in."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated

from pydantic import Field

from hpc.spec.base import Form, SpecModel, ZoneId
from hpc.spec.units import Cidr, Cidr4, PortRange

#: Ports of the Slurm daemons that other hosts connect to: slurmctld, slurmd, slurmdbd (defaults of slurm.conf(5)).
SLURMCTLD_PORT = 6817
SLURMD_PORT = 6818
SLURMDBD_PORT = 6819


class NetworkSpec(SpecModel):
    """The VPC and its vSwitches, or existing ones by id."""

    cidr: Cidr4 = IPv4Network("10.16.0.0/16")
    """Address range of the VPC; split evenly over the zones unless `vswitches` says otherwise."""

    vswitches: dict[ZoneId, Cidr4] = Field(default_factory=dict, max_length=32)
    """Address range of the vSwitch of a zone; zones that are not named get their share of `cidr`."""

    vpc_id: Annotated[str, Form(r"^vpc-[a-z0-9]{1,60}$", "the id of a VPC such as vpc-bp1abcdefgh")] | None = None
    """Use this VPC instead of making one; `cidr` must then be the VPC's own range."""

    vswitch_ids: dict[
        ZoneId, Annotated[str, Form(r"^vsw-[a-z0-9]{1,60}$", "the id of a vSwitch such as vsw-bp1abcdefgh")]
    ] = Field(default_factory=dict, max_length=32)
    """Use these vSwitches instead of making them (needs `vpc_id`)."""

    ssh_from: Annotated[tuple[Cidr, ...], Field(max_length=200)] = ()
    """Networks from which people may log in to the login nodes by SSH; nobody unless given."""

    mpi_ports: PortRange = PortRange(30000, 31000)
    """TCP and UDP ports of MPI between nodes; only the cluster's own members reach them."""

    srun_ports: PortRange = PortRange(31001, 32000)
    """TCP ports on which srun listens for its tasks (SrunPortRange of slurm.conf); below those that Linux hands out."""

    nat: bool = False
    """Make a NAT gateway so that hosts without a public address reach the Internet (costs by the hour)."""

    ipv6: bool = False
    """Give the VPC an IPv6 range. An eRDMA interface cannot have an IPv6 address."""
