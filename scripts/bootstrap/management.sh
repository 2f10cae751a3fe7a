#!/bin/bash
# Sets up a management node: database, accounting, controller, elastic daemon, software on shared storage. It can be run
# again at any time and changes only what differs.
#   management.sh --bundle ARCHIVE [--backup]   with the run-time input on stdin (see read_input in input.sh)
# --backup: the second management node, whose slurmctld takes over when the first is away.
set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"
# shellcheck source=distribution.sh
. "$here/distribution.sh"
# shellcheck source=input.sh
. "$here/input.sh"
# shellcheck source=controller.sh
. "$here/controller.sh"

bundle="" backup=0
while (($#)); do
    case $1 in
    --bundle) bundle=${2:-} && shift ;;
    --backup) backup=1 ;;
    *) echo "usage: management.sh --bundle ARCHIVE [--backup]" >&2 && exit 2 ;;
    esac
    shift
done

# The cluster folder on shared storage: content of the bundle, then what is known only at run time.
cluster_folder() {
    local stage file mode
    folder "$HPC_SHARE/.hpc" 755 root:root
    link "$HPC_SHARE/.hpc" "$HPC_LINK"
    folder "$HPC_LINK/etc" 755 root:root
    if ((!backup)); then
        stage=$(mktemp -d)
        tar -xzf "$bundle" -C "$stage" || fail HPC916 "the bundle $bundle cannot be read"
        while IFS= read -r -d '' file; do
            mode=644
            [[ -x $stage/$file ]] && mode=755
            put "$HPC_LINK/$file" "$mode" root:root <"$stage/$file" || true
        done < <(cd "$stage" && find . -type f ! -name munge.key -print0 | sort -z | sed -z 's|^\./||')
        rm -rf "$stage"
        for file in facts.env facts.json mounts hosts.static pools.json; do
            put "$HPC_LINK/etc/$file" 644 root:root <"$HPC_INPUT/$file" || true
        done
        # Slurm's, not root's: a node reads it where root is squashed, too.
        put "$HPC_LINK/etc/munge.key" 400 64030:64030 <"$HPC_INPUT/munge.key" || true
    fi
    [[ -s $HPC_LINK/etc/cluster.env ]] || fail HPC902 "the cluster folder is empty: the first management node has not been set up"
}

# Accounts keep their numbers: new names are appended, and none is ever taken out.
user_numbers() {
    local list=$HPC_LINK/etc/users name next
    touch "$list"
    for name in $HPC_USERS; do
        grep -q "^$name " "$list" && continue
        next=$(awk 'BEGIN {n = 20000} $2 >= n {n = $2 + 1} END {print n}' "$list")
        echo "$name $next" >>"$list"
        changed "user $name has number $next"
    done
}

# Homes on shared storage, with a key for logging in from node to node, and the administrators' keys for the first login.
user_homes() {
    local name number home
    while read -r name number; do
        home=$HPC_ROOT$HPC_HOMES/$name
        [[ -d $home ]] && continue
        mkdir -p "$home/.ssh"
        cp -rT /etc/skel "$home" 2>/dev/null || true
        ssh-keygen -q -t ed25519 -N "" -C "$name@$HPC_CLUSTER" -f "$home/.ssh/id_ed25519"
        cat "$home/.ssh/id_ed25519.pub" "$HPC_ROOT/root/.ssh/authorized_keys" 2>/dev/null >"$home/.ssh/authorized_keys" || true
        chmod 700 "$home" "$home/.ssh"
        chmod 600 "$home/.ssh/authorized_keys"
        [[ -n $HPC_ROOT ]] || chown -R "$number:$number" "$home"
        changed "home of $name"
    done <"$HPC_LINK/etc/users"
}

start_log management.sh
wait_for_first_boot
detect
read_input
if ((!backup)); then
    [[ -s $bundle ]] || fail HPC916 "there is no bundle at ${bundle:-(not given)}"
    for item in munge.key database.password pools.json hosts.static; do
        [[ -s $HPC_INPUT/$item ]] || fail HPC915 "the input has no $item"
    done
fi
nfs_client
mount_all "$HPC_INPUT/mounts"
cluster_folder
# shellcheck disable=SC1091
. "$HPC_LINK/etc/cluster.env"
# shellcheck disable=SC1091
. "$HPC_LINK/etc/facts.env"
sync_hosts all
need node management
slurm_release slurmctld
no_automatic_updates
shell_environment
administrator_keys
((backup)) || user_numbers
make_users
((backup)) || user_homes
slurm_account
folder "$HPC_LINK/nodes" 755 slurm:slurm
folder "$HPC_LINK/state" 755 root:root
munge_key
slurm_files
tuning
time_in_sync
firewall management
selinux
if ((!backup)); then
    database
    accounting_daemon
fi
elastic_daemon
controller
if ((!backup)); then
    accounts
    /bin/bash "$HPC_LINK/bootstrap/mpi.sh"
fi
sync_timer
finish management.sh
