#!/bin/bash
# Slurm's Prolog, as root on every node of a job before its first step: the node knows its peers' names, and a node whose
# eRDMA device is gone is drained instead of running MPI over TCP.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/sync-hosts.sh"
# shellcheck disable=SC1091
. "${HPC_LINK:-/opt/hpc}/etc/cluster.env"
variable=HPC_POOL_${SLURM_JOB_PARTITION//-/_}
if [[ ${!variable:-tcp} == erdma && ! -d ${HPC_ROOT:-}/sys/class/infiniband/erdma_0 ]]; then
    echo "HPC924: no eRDMA device on $(hostname -s)" >&2
    exit 1
fi
