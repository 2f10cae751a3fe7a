"""Where things are on the nodes. The scripts under `scripts/bootstrap` use the same paths (a test holds them equal)."""

from __future__ import annotations

from hpc.errors import RefusedError
from hpc.spec.cluster import ClusterSpec
from hpc.spec.storage import StorageKind, StorageSpec

#: The cluster folder on shared storage, relative to the mount point of the first general NAS.
CLUSTER_FOLDER = ".hpc"

#: Every node reaches the cluster folder under this symbolic link.
CLUSTER_LINK = "/opt/hpc"

#: Configuration: `slurm/`, `cluster.env`, `facts.env`, `facts.json`, `mounts`, `pools.json`, `hosts.static`, `users`,
#: `munge.key`.
ETC = f"{CLUSTER_LINK}/etc"

#: What nodes and the elastic daemon tell each other; the folder belongs to slurm, as which the daemon runs.
#: `<instance id>.name`, written by the daemon: which node an instance is (not needed where its host name says so).
#: `<node>.failed`, written by the node: one line `HPC9xx: reason`, why it could not start.
NODES = f"{CLUSTER_LINK}/nodes"

#: `IP name` lines of the compute nodes that live, written by the daemon (replaced atomically).
HOSTS_OF_NODES = f"{NODES}/hosts"

#: The bootstrap scripts.
BOOTSTRAP = f"{CLUSTER_LINK}/bootstrap"

#: State of slurmctld where a backup controller has to read it, too.
SHARED_STATE = f"{CLUSTER_LINK}/state/slurmctld"

#: State of slurmctld on a single management node.
LOCAL_STATE = "/var/spool/slurmctld"

#: MPI stacks, `<stack>/<version>`, and their module files.
MPI = f"{CLUSTER_LINK}/mpi"
MODULE_FILES = f"{CLUSTER_LINK}/modulefiles"

#: The elastic daemon's virtual environment (on the management node's own disk) and Slurm's two programs.
ELASTIC_VENV = "/usr/local/lib/hpc-elastic"
RESUME_PROGRAM = "/usr/local/sbin/hpc-resume"
SUSPEND_PROGRAM = "/usr/local/sbin/hpc-suspend"


def software_storage(spec: ClusterSpec) -> StorageSpec:
    """The file system that holds the cluster folder: the first general NAS.

    Raises:
        RefusedError: HPC801, there is no general NAS.
    """
    for storage in spec.storage:
        if storage.kind is StorageKind.GENERAL:
            return storage
    raise RefusedError(
        "no file system of kind general: there is no place for the cluster's configuration and software",
        code="HPC801",
        fix="add a storage entry with kind: general",
    )
