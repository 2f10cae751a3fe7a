"""What runs on the nodes: Slurm settings, MPI stacks, who may log in."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from hpc.spec.base import Form, Name, SpecModel

SlurmParameter = Annotated[str, Form(r"^[A-Za-z][A-Za-z0-9]{1,40}$", "the name of a slurm.conf parameter")]
SlurmValue = Annotated[
    str,
    Form(r"^[^\x00-\x1f#\"'\\]{0,200}$", "one line of text without #, quotes and backslashes"),
]


#: A public key as OpenSSH writes it: type, base64, comment.
PublicKey = Annotated[
    str,
    Form(
        r"^(ssh|ecdsa|sk)-[a-zA-Z0-9@.-]{1,60} [A-Za-z0-9+/=]{1,6000}( [^\x00-\x1f]{0,500})?$",
        "an OpenSSH public key such as ssh-ed25519 AAAA... name",
    ),
]

#: A Linux account name.
UserName = Annotated[
    str,
    Form(
        r"^[a-z][a-z0-9_-]{0,30}$",
        "an account name: at most 31 lower case letters, digits, hyphens and underscores, first a letter",
    ),
]


class MpiStack(StrEnum):
    """MPI implementations that are installed as environment modules."""

    OPENMPI = "openmpi"
    MPICH = "mpich"
    INTELMPI = "intelmpi"


class MpiSpec(SpecModel):
    """MPI stacks on shared storage."""

    stacks: Annotated[tuple[MpiStack, ...], Field(max_length=10)] = (
        MpiStack.OPENMPI,
        MpiStack.MPICH,
        MpiStack.INTELMPI,
    )
    """Which stacks to install."""

    default: MpiStack = MpiStack.OPENMPI
    """Which stack the module `mpi` loads."""


_OWNED = """
ClusterName SlurmctldHost ControlMachine ControlAddr BackupController BackupAddr NodeName PartitionName
NodeSet DownNodes FrontendName SlurmUser SlurmdUser SlurmctldPort SlurmdPort SrunPortRange ResumeProgram
ResumeFailProgram SuspendProgram ResumeTimeout ResumeRate SuspendTimeout SuspendTime SuspendRate
SuspendExcNodes SuspendExcParts SuspendExcStates StateSaveLocation SlurmdSpoolDir AccountingStorageType
AccountingStorageHost AccountingStoragePort AccountingStorageBackupHost AuthType CredType Include
TopologyPlugin PrivateData
"""

#: Parameters of slurm.conf that follow from the rest of the stack file, in lower case: who and where, ports, what
#: starts and stops nodes, accounting. A second value would make Slurm and the rest of the program disagree.
OWNED_PARAMETERS = frozenset(_OWNED.lower().split())


class SlurmSpec(SpecModel):
    """Settings of the scheduler beyond what the pools say."""

    default_partition: Name | None = None
    """Pool whose partition takes jobs that name none; the first pool unless given."""

    topology: bool = False
    """Write a topology file (one switch per pool and zone)."""

    parameters: dict[SlurmParameter, SlurmValue] = Field(default_factory=dict, max_length=200)
    """Further lines for slurm.conf, for instance `PriorityType: priority/multifactor`."""


class AccessSpec(SpecModel):
    """Who may log in beside the key that the program makes for itself."""

    ssh_keys: Annotated[tuple[PublicKey, ...], Field(max_length=500)] = ()
    """OpenSSH public keys that are accepted on every node for the administrator."""

    users: Annotated[tuple[UserName, ...], Field(max_length=5000)] = ()
    """User accounts to make on all nodes, with homes on shared storage and a Slurm account."""
