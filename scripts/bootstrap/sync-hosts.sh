#!/bin/bash
# Brings /etc/hosts up to date with the list of nodes on shared storage; writes only when something changed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"
sync_hosts
