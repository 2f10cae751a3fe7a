#!/bin/bash
# Sets up a login node: Slurm's commands, compilers, modules, users. Can be run again at any time.
# Input on stdin: see read_input in input.sh.
set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"
# shellcheck source=distribution.sh
. "$here/distribution.sh"
# shellcheck source=input.sh
. "$here/input.sh"

start_log login.sh
wait_for_first_boot
detect
read_input
nfs_client
mount_all "$HPC_INPUT/mounts"
link "$HPC_SHARE/.hpc" "$HPC_LINK"
[[ -f $HPC_LINK/etc/cluster.env ]] || fail HPC902 "the cluster folder is empty: the management node has not been set up"
# shellcheck disable=SC1091
. "$HPC_LINK/etc/cluster.env"
# shellcheck disable=SC1091
. "$HPC_LINK/etc/facts.env"
sync_hosts all
need node login
shell_environment
administrator_keys
make_users
slurm_account
munge_key
slurm_files
# Slurm's commands say nothing without a configuration, not even their release.
slurm_release sinfo
tuning
mpi_ports
time_in_sync
firewall login
selinux
sync_timer
retry 8 sinfo >/dev/null 2>&1 || fail HPC914 "slurmctld does not answer on $HPC_MANAGEMENT: see /var/log/slurm/slurmctld.log there"
finish login.sh
