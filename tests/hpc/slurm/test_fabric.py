"""Settings of the MPI stacks for the fabric of a pool."""

from __future__ import annotations

import pytest

from hpc.slurm.mpi import fabric_settings
from hpc.spec.cluster import ClusterSpec
from hpc.spec.pool import Interconnect
from hpc.spec.software import MpiStack

SPEC = ClusterSpec.model_validate(
    {
        "name": "c",
        "region": "cn-hangzhou",
        "zones": ["cn-hangzhou-j"],
        "network": {"mpi_ports": "40000-40999"},
        "pools": [{"name": "mpi", "instance_types": ["ecs.c8ae.4xlarge"]}],
    }
)


@pytest.mark.parametrize("stack", [MpiStack.MPICH, MpiStack.INTELMPI])
def test_ranks_of_libfabric_draw_no_ports_of_their_own(stack: MpiStack) -> None:
    # Two ranks that start in the same moment draw the same one; the kernel gives no port twice.
    names = set(fabric_settings(stack, Interconnect.TCP, SPEC))
    assert not names & {"FI_TCP_PORT_LOW_RANGE", "FI_TCP_PORT_HIGH_RANGE", "I_MPI_PORT_RANGE"}


def test_open_mpi_stays_within_the_ports_of_the_members() -> None:
    settings = fabric_settings(MpiStack.OPENMPI, Interconnect.TCP, SPEC)
    assert settings["OMPI_MCA_btl_tcp_port_min_v4"] == "40000"
    assert settings["OMPI_MCA_btl_tcp_port_range_v4"] == "1000"


@pytest.mark.parametrize("stack", list(MpiStack))
def test_erdma_is_never_left_to_chance(stack: MpiStack) -> None:
    settings = fabric_settings(stack, Interconnect.ERDMA, SPEC)
    chosen = {"OMPI_MCA_pml": "ucx"} if stack is MpiStack.OPENMPI else {"FI_PROVIDER": "verbs;ofi_rxm"}
    assert chosen.items() <= settings.items()
