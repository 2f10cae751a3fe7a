#!/bin/bash
# Slurm's TaskProlog, as the user before each task; lines `export NAME=value` and `unset NAME` change its environment.
# A module that was loaded outside of the job (on the login node) holds the fabric settings of another pool: they are
# replaced by those of the pool that the job runs in.
pool=${SLURM_JOB_PARTITION:-}
[[ -n ${HPC_MPI:-} && -n $pool && ${HPC_MPI_POOL:-} != "$pool" ]] || exit 0
folder=${HPC_LINK:-/opt/hpc}/etc/fabric
[[ -r $folder/$HPC_MPI.$pool ]] || exit 0
[[ -r $folder/$HPC_MPI.${HPC_MPI_POOL:-} ]] && sed -E 's/^([A-Za-z0-9_]+)=.*/unset \1/' "$folder/$HPC_MPI.$HPC_MPI_POOL"
sed -E 's/^/export /' "$folder/$HPC_MPI.$pool"
echo "export HPC_MPI_POOL=$pool"
