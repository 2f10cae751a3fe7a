"""What differs between hosts of the real cloud and of the local one, as far as Slurm is concerned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostProfile:
    """Properties of hosts that slurm.conf has to follow.

    Attributes:
        name: `cloud` or `local`, for the bootstrap scripts.
        cgroups: control groups are writable, so that Slurm can hold jobs in them.
        oversubscribed: hosts share the machine's cores, so waiting MPI processes must yield and the size that
            slurm.conf says is taken on trust.
        kernel_settings: nodes may change kernel settings, among them the range of ports that connections use.
        suspend_timeout: seconds between SuspendProgram and the moment a node may be started again.
    """

    name: str
    cgroups: bool
    oversubscribed: bool
    kernel_settings: bool
    suspend_timeout: int


#: Hosts of Alibaba Cloud.
CLOUD = HostProfile("cloud", cgroups=True, oversubscribed=False, kernel_settings=True, suspend_timeout=60)

#: Hosts of the local cloud: containers with read-only control groups that share few cores.
LOCAL = HostProfile("local", cgroups=False, oversubscribed=True, kernel_settings=False, suspend_timeout=10)
