#!/bin/bash
# Brings /etc/hosts up to date with the list of nodes on shared storage; writes only when something changed.
#   sync-hosts.sh [--all]   --all: the names of nodes that do not live, too (management and login nodes)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"
if [[ ${1:-} == --all ]]; then
    # shellcheck disable=SC1091
    . "$HPC_LINK/etc/cluster.env"
    sync_hosts all
else
    sync_hosts
fi
