"""Rules on the pinned port ranges."""

from __future__ import annotations

from collections.abc import Iterator

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.network import SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT
from hpc.spec.rules.context import Context, cpus
from hpc.spec.units import PortRange

#: Most ports that are opened for MPI: the default range 30000-31000.
MOST_MPI_PORTS = 1001

#: net.ipv4.ip_local_port_range of Linux: ports of outgoing connections.
EPHEMERAL = PortRange(32768, 60999)

#: Ports of the cluster's services.
SERVICES = {
    "SSH": PortRange(22, 22),
    "rpcbind": PortRange(111, 111),
    "NFS": PortRange(2049, 2049),
    "MariaDB": PortRange(3306, 3306),
    "slurmctld": PortRange(SLURMCTLD_PORT, SLURMCTLD_PORT),
    "slurmd": PortRange(SLURMD_PORT, SLURMD_PORT),
    "slurmdbd": PortRange(SLURMDBD_PORT, SLURMDBD_PORT),
}


def _ranges(context: Context) -> dict[str, PortRange]:
    network = context.spec.network
    return {"network.mpi_ports": network.mpi_ports, "network.srun_ports": network.srun_ports}


def mpi_port_count(context: Context) -> Iterator[Finding]:
    """HPC215, HPC216: as many MPI ports as ranks on a node, and not many more than that."""
    ports = context.spec.network.mpi_ports
    if ports.count > MOST_MPI_PORTS:
        text = f"{ports} has {ports.count} ports, more than {MOST_MPI_PORTS}"
        yield finding("HPC215", "network.mpi_ports", str(ports), text)
    sizes = {kind.name: cpus(kind, hyperthreading=pool.hyperthreading) for _, pool, kind in context.pool_types}
    largest = max(sizes, key=lambda name: sizes[name], default=None)
    if largest and ports.count < sizes[largest]:
        text = f"{ports} has {ports.count} ports, but {largest} runs up to {sizes[largest]} ranks"
        fix = f"use at least {sizes[largest]} ports, for instance 30000-31000"
        yield finding("HPC216", "network.mpi_ports", str(ports), text, fix)


def ports_apart(context: Context) -> Iterator[Finding]:
    """HPC217: no range meets another or a service."""
    ranges = _ranges(context)
    mpi, srun = ranges["network.mpi_ports"], ranges["network.srun_ports"]
    if mpi.overlaps(srun):
        yield finding("HPC217", "network.srun_ports", str(srun), f"{srun} of srun overlaps {mpi} of MPI")
    for path, ports in ranges.items():
        for service, taken in SERVICES.items():
            if ports.overlaps(taken):
                yield finding("HPC217", path, str(ports), f"{ports} contains port {taken.first} of {service}")


def unprivileged_ports(context: Context) -> Iterator[Finding]:
    """HPC218: users may listen on the ports."""
    for path, ports in _ranges(context).items():
        if ports.first < 1024:
            yield finding("HPC218", path, str(ports), f"{ports} begins below 1024")


def ports_not_ephemeral(context: Context) -> Iterator[Finding]:
    """HPC219: Linux does not give the ports away."""
    for path, ports in _ranges(context).items():
        if ports.overlaps(EPHEMERAL):
            yield finding("HPC219", path, str(ports), f"{ports} overlaps {EPHEMERAL}")


RULES = (mpi_port_count, ports_apart, unprivileged_ports, ports_not_ephemeral)
