"""What runs on the nodes: Slurm settings, MPI stacks, who may log in."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from hpc.spec.base import SpecModel

SlurmParameter = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9]{1,40}$")]
SlurmValue = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f#\"'\\]{0,200}$")]


class MpiStack(StrEnum):
    """MPI implementations that are installed as environment modules."""

    OPENMPI = "openmpi"
    MPICH = "mpich"
    INTELMPI = "intelmpi"


class MpiSpec(SpecModel):
    """MPI stacks on shared storage."""

    stacks: tuple[MpiStack, ...] = (MpiStack.OPENMPI, MpiStack.MPICH, MpiStack.INTELMPI)
    """Which stacks to install."""

    default: MpiStack = MpiStack.OPENMPI
    """Which stack the module `mpi` loads."""


class SlurmSpec(SpecModel):
    """Settings of the scheduler beyond what the pools say."""

    default_partition: str | None = None
    """Pool whose partition takes jobs that name none; the first pool unless given."""

    topology: bool = False
    """Write a topology file (one switch per pool and zone)."""

    parameters: dict[SlurmParameter, SlurmValue] = Field(default_factory=dict)
    """Further lines for slurm.conf, for instance `PriorityType: priority/multifactor`."""


class AccessSpec(SpecModel):
    """Who may log in beside the key that the program makes for itself."""

    ssh_keys: tuple[
        Annotated[str, StringConstraints(pattern=r"^(ssh|ecdsa|sk)-[a-zA-Z0-9@.-]+ [A-Za-z0-9+/=]+( .*)?$")], ...
    ] = ()
    """OpenSSH public keys that are accepted on every node for the administrator."""

    users: tuple[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,30}$")], ...] = ()
    """User accounts to make on all nodes, with homes on shared storage and a Slurm account."""
