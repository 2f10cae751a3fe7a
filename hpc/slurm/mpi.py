"""MPI stacks: pinned versions, module files, and the settings that make each use the pool's fabric."""

from __future__ import annotations

from dataclasses import dataclass

from hpc.slurm import layout
from hpc.slurm.profile import CLOUD, HostProfile
from hpc.slurm.render import render
from hpc.spec.cluster import ClusterSpec
from hpc.spec.pool import Interconnect
from hpc.spec.software import MpiStack

#: Versions of the wheels on PyPI (manylinux_2_28, x86-64): relocatable builds that are the same on every distribution.
#: Each was installed, used to compile a C program and run over two nodes with `mpirun` and `srun` under Slurm 22.05.8.
VERSIONS = {MpiStack.OPENMPI: "5.0.11", MpiStack.MPICH: "5.0.2", MpiStack.INTELMPI: "2021.19.0"}

#: Name of each stack's module.
MODULES = {MpiStack.OPENMPI: "openmpi", MpiStack.MPICH: "mpich", MpiStack.INTELMPI: "intelmpi"}

#: Name of the interface on ECS images, and in hosts of the local cloud.
INTERFACE = "eth0"

#: UCX on eRDMA, as https://help.aliyun.com/en/ecs/user-guide/erdma-usage and the erdma-controller's documents have it:
#: no shared receive queues, and no tcp in the list, so that a node without RDMA fails instead of being slow.
_UCX_ERDMA = {
    "UCX_TLS": "rc_verbs,ud_verbs,self,sm",
    "UCX_NET_DEVICES": "erdma_0:1",
    "UCX_RC_VERBS_USE_SRQ": "n",
    "UCX_RC_VERBS_RX_CQ_LEN": "131072",
    "UCX_UD_VERBS_TX_MIN_INLINE": "128",
}


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str
    value: str


def fabric_settings(
    stack: MpiStack, interconnect: Interconnect, spec: ClusterSpec, profile: HostProfile = CLOUD
) -> dict[str, str]:
    """Environment variables that make a stack use the pool's fabric.

    Args:
        stack: the MPI implementation.
        interconnect: fabric of the pool.
        spec: for the pinned ports.
        profile: hosts that share cores get yielding waits.
    """
    ports = spec.network.mpi_ports
    rdma = interconnect is Interconnect.ERDMA
    if stack is MpiStack.OPENMPI:
        settings = _openmpi(rdma, ports.first, ports.count)
        if profile.oversubscribed:
            settings |= {"OMPI_MCA_mpi_yield_when_idle": "1"}
        if not profile.kernel_settings:
            # Direct connections between Slurm's PMIx servers use any port; without them they go through slurmd's.
            settings |= {"SLURM_PMIX_DIRECT_CONN": "false"}
    elif stack is MpiStack.MPICH:
        # The wheel's default device is ch4 over UCX or libfabric; libfabric has one setting for both fabrics.
        settings = _libfabric(rdma) | {
            "MPIR_CVAR_CH4_NETMOD": "ofi",
            "MPIEXEC_PORT_RANGE": f"{ports.first}:{ports.last}",
        }
        if profile.oversubscribed:
            settings |= {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    else:
        settings = _libfabric(rdma) | {"I_MPI_FABRICS": "shm:ofi"}
        if profile.oversubscribed:
            settings |= {"I_MPI_WAIT_MODE": "1", "I_MPI_THREAD_YIELD": "3"}
    return settings


def _openmpi(rdma: bool, first_port: int, ports: int) -> dict[str, str]:
    wire = {
        # Members of the security group reach each other on the pinned ports only. (The run-time's own port is in the
        # module file: it listens on every port of a range that it is given, so it gets one per job.)
        "OMPI_MCA_btl_tcp_port_min_v4": str(first_port),
        "OMPI_MCA_btl_tcp_port_range_v4": str(ports),
        "OMPI_MCA_btl_tcp_if_include": INTERFACE,
        "PRTE_MCA_oob_tcp_if_include": INTERFACE,
    }
    if rdma:
        return wire | {"OMPI_MCA_pml": "ucx", "OMPI_MCA_osc": "ucx"} | _UCX_ERDMA
    return wire | {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self,sm"}


def _libfabric(rdma: bool) -> dict[str, str]:
    """`verbs;ofi_rxm` uses reliable connections and RDMA_CM only, which is what eRDMA offers.

    No port range for TCP (FI_TCP_PORT_LOW_RANGE, or I_MPI_PORT_RANGE, which sets it): libfabric would draw a port by
    the time and the process number, and of two ranks that start in the same moment one then fails with "OFI EP enable
    failed: Address already in use" (one start of ten with two ranks on a host, libfabric 2.5.1). The kernel of a
    compute node hands out ports of the members' range only (`mpi_ports` of the bootstrap), and none of them twice.
    """
    if rdma:
        return {"FI_PROVIDER": "verbs;ofi_rxm", "FI_VERBS_IFACE": INTERFACE}
    return {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": INTERFACE}


def module_file(stack: MpiStack, spec: ClusterSpec, profile: HostProfile = CLOUD) -> str:
    """Module file of a stack, in Tcl, which Environment Modules and Lmod both read.

    It sets the paths, how Slurm starts the stack, and the fabric settings of the pool that the job runs in.
    """
    return render(
        "module.tcl.j2",
        stack=stack.value,
        module=MODULES[stack],
        version=VERSIONS[stack],
        ports=spec.network.mpi_ports,
        root=f"{layout.MPI}/{MODULES[stack]}/{VERSIONS[stack]}",
        pools=[
            {
                "name": pool.name,
                "settings": [
                    _Setting(key, value)
                    for key, value in fabric_settings(stack, pool.interconnect, spec, profile).items()
                ],
            }
            for pool in spec.pools
        ],
    )


def default_module(spec: ClusterSpec) -> str:
    """Module file of `mpi`, which loads the default stack."""
    stack = spec.mpi.default
    return render("mpi.tcl.j2", target=f"{MODULES[stack]}/{VERSIONS[stack]}")
