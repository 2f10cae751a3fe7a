"""User data: what cloud-init runs at the first boot of a node. No secrets: any process on a node can read it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from hpc.errors import RefusedError
from hpc.slurm import layout
from hpc.slurm.mounts import Mount
from hpc.slurm.render import render
from hpc.spec.cluster import ClusterSpec
from hpc.spec.pool import PoolSpec

#: RunInstances takes 32 KB; half of that leaves room for whatever a site adds in front.
LIMIT = 16 * 1024


def compute_user_data(spec: ClusterSpec, pool: PoolSpec, mounts: Sequence[Mount]) -> str:
    """Script that mounts the shared storage and hands over to `compute.sh` on it.

    Args:
        spec: the cluster.
        pool: the pool that the node belongs to.
        mounts: from `hpc.slurm.mounts.mounts_of`; only the one with the cluster folder is used here.

    Raises:
        RefusedError: HPC801 without a general NAS, HPC802 when `mounts` lacks it.
    """
    home = layout.software_storage(spec).mount
    share = next((mount for mount in mounts if mount.path == home), None)
    if share is None:
        raise RefusedError(
            f"file system {home} has no mount target", code="HPC802", fix="run `pulumi up` again to make it"
        )
    return render(
        "compute-user-data.sh.j2",
        pool=shlex.quote(pool.name),
        path=shlex.quote(share.path),
        source=shlex.quote(share.source),
        options=shlex.quote(share.options),
        folder=layout.CLUSTER_FOLDER,
        link=layout.CLUSTER_LINK,
        script=f"{layout.BOOTSTRAP}/compute.sh",
    )


def node_user_data(spec: ClusterSpec) -> str:
    """Cloud-config of management and login nodes: keys only, no passwords. The rest comes over SSH."""
    return render("node-user-data.yaml.j2", cluster=spec.name)
