# shellcheck shell=bash
# What all bootstrap scripts share: logging, failing with a reason, files that are only written when they differ, mounts.
# Sourced. HPC_ROOT is a prefix for every path outside of the cluster folder; it is empty except in tests.

: "${HPC_ROOT:=}"
: "${HPC_LINK:=$HPC_ROOT/opt/hpc}"
HPC_LOG=$HPC_ROOT/var/log/hpc-bootstrap.log
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C

# Everything a script prints goes into the log, too; the reason of a failure is the last line on stderr.
start_log() {
    mkdir -p "$(dirname "$HPC_LOG")"
    touch "$HPC_LOG"
    chmod 640 "$HPC_LOG"
    export HPC_COUNT=$HPC_LOG.changes
    : >"$HPC_COUNT"
    exec 3>&2
    exec > >(tee -a "$HPC_LOG") 2>&1
    trap 'unexpected $? "$BASH_COMMAND" $LINENO' ERR
    say "$1 starts ($(date -u +%FT%TZ))"
}

say() { printf '%s\n' "hpc: $*"; }

changed() {
    # A file, not a variable: much of this runs in subshells.
    [[ -z ${HPC_COUNT:-} ]] || echo "$*" >>"$HPC_COUNT"
    say "changed: $*"
}

# fail CODE REASON: one line `CODE: REASON` as the last thing, for the Pulumi log; a compute node also leaves it on
# shared storage, where the elastic daemon picks it up as the node's reason in Slurm.
fail() {
    trap - ERR
    local line="$1: $2"
    printf '%s\n' "$line" >>"$HPC_LOG"
    [[ -n ${HPC_NODE_NAME:-} ]] && report_reason "$line"
    [[ -w /dev/console && -z $HPC_ROOT ]] && printf '%s\n' "$line" >/dev/console
    # Give the log's `tee` the time to write what came before.
    sleep 0.1
    printf '%s\n' "$line" >&3
    exit 1
}

# as_owner FILE COMMAND...: run as the owner of FILE. What is on shared storage and not for everybody belongs to slurm,
# because a NAS whose access rule squashes root lets root of a node neither write there nor read what has mode 400.
as_owner() {
    local owner
    owner=$(stat -L -c %u:%g "$1") || return
    shift
    if ((EUID != 0)) || [[ $owner == 0:* ]]; then
        "$@"
    else
        setpriv --reuid="${owner%:*}" --regid="${owner#*:}" --clear-groups -- "$@"
    fi
}

# report_reason LINE: on shared storage, where the elastic daemon looks; where that cannot be written, straight to Slurm.
report_reason() {
    local file=$HPC_LINK/nodes/$HPC_NODE_NAME.failed
    # shellcheck disable=SC2016  # expanded by the inner shell
    if [[ -d $HPC_LINK/nodes ]] && as_owner "$HPC_LINK/nodes" \
        /bin/sh -c 'umask 022; printf "%s\n" "$1" >"$2.new" && mv -f "$2.new" "$2"' sh "$1" "$file" 2>>"$HPC_LOG"; then
        return 0
    fi
    command -v scontrol >/dev/null || return 0
    timeout 15 scontrol update "NodeName=$HPC_NODE_NAME" "Reason=$1" >>"$HPC_LOG" 2>&1 || true
}

unexpected() {
    # A subshell leaves the message to the shell that waits for it.
    ((BASH_SUBSHELL == 0)) || exit "$1"
    fail HPC900 "\`$2\` ended with $1 (line $3); see $HPC_LOG on $(hostname -s)"
}

# retry ATTEMPTS COMMAND...: with growing pauses of 1, 2, 4, ... seconds, at most 15.
retry() {
    local attempts=$1 pause=1 try
    shift
    for ((try = 1; try <= attempts; try++)); do
        "$@" && return 0
        ((try == attempts)) && return 1
        sleep "${HPC_PAUSE:-$pause}"
        pause=$((pause * 2 < 15 ? pause * 2 : 15))
    done
}

# put FILE MODE OWNER: write stdin to FILE unless it holds that already; 0 if it was changed, 1 if not.
put() {
    local file=$1 mode=$2 owner=$3 new
    mkdir -p "$(dirname "$file")"
    new=$(mktemp "$file.XXXXXX")
    cat >"$new"
    chmod "$mode" "$new"
    own "$owner" "$new"
    if [[ -f $file && ! -L $file ]] && cmp -s "$new" "$file"; then
        rm -f "$new"
        chmod "$mode" "$file"
        own "$owner" "$file"
        return 1
    fi
    mv -f "$new" "$file"
    changed "$file"
}

own() {
    [[ -n $HPC_ROOT ]] && return 0
    chown "$1" "$2"
}

# folder PATH MODE OWNER
folder() {
    mkdir -p "$1"
    chmod "$2" "$1"
    own "$3" "$1"
}

# link TARGET NAME: a symbolic link, replacing a file of that name.
link() {
    [[ -L $2 && $(readlink "$2") == "$1" ]] && return 0
    mkdir -p "$(dirname "$2")"
    ln -sfn "$1" "$2"
    changed "$2 -> $1"
}

# block FILE MARK: keep stdin as a marked block in FILE, in its place or at the end, leaving the rest alone.
block() {
    local file=$1 mark=$2 body
    body=$(mktemp)
    cat >"$body"
    mkdir -p "$(dirname "$file")"
    touch "$file"
    awk -v open="# >>> $mark" -v end="# <<< $mark" -v body="$body" '
        function write_block(line) {
            print open
            while ((getline line <body) > 0) print line
            print end
            written = 1
        }
        $0 == open { write_block(); inside = 1 }
        !inside { print }
        $0 == end { inside = 0 }
        END { if (!written) write_block() }
    ' "$file" | put "$file" 644 root:root || true
    rm -f "$body"
}

# mount_all FILE: lines `path source options`; into fstab (in order) and mounted, each within bounded retries.
mount_all() {
    local path source options
    awk 'NF == 3 {print $2, $1, "nfs", $3, 0, 0}' "$1" | block "$HPC_ROOT/etc/fstab" "hpc mounts"
    while read -r path source options; do
        [[ -n $path ]] || continue
        mkdir -p "$HPC_ROOT$path"
        mountpoint -q "$HPC_ROOT$path" && continue
        retry 5 timeout 60 mount -t nfs -o "$options" "$source" "$HPC_ROOT$path" ||
            fail HPC901 "$source does not mount on $path: check the mount target, its access group and the security group"
        changed "mounted $source on $path"
    done <"$1"
}

# users: accounts with the same numbers on every node. The list on shared storage only grows, so that a number is never
# used twice; it is written by the management node.
make_users() {
    local list=$HPC_LINK/etc/users name number
    [[ -f $list ]] || return 0
    while read -r name number; do
        [[ -n $name ]] || continue
        if ! getent passwd "$name" >/dev/null; then
            getent group "$name" >/dev/null || groupadd -g "$number" "$name"
            useradd -M -u "$number" -g "$number" -d "$HPC_HOMES/$name" -s /bin/bash "$name" ||
                fail HPC912 "user $name ($number) cannot be made: the number or name is taken on $(hostname -s)"
            changed "user $name"
        fi
    done <"$list"
}

# The slurm account has one number everywhere, because state on shared storage belongs to it.
slurm_account() {
    getent group slurm >/dev/null || groupadd -r -g 64030 slurm
    getent passwd slurm >/dev/null || useradd -r -u 64030 -g slurm -d /nonexistent -s /usr/sbin/nologin slurm
    local number
    number=$(getent passwd slurm | cut -d: -f3)
    [[ $number == 64030 ]] || fail HPC913 "account slurm has number $number, not 64030, on $(hostname -s)"
}

# munge_key: from shared storage; the service is restarted only when the key changed.
munge_key() {
    local fresh=0
    [[ -s $HPC_LINK/etc/munge.key ]] || fail HPC903 "no munge key in the cluster folder: the management node has not been set up"
    local key=$HPC_LINK/etc/munge.key
    as_owner "$key" cat "$key" >/dev/null || fail HPC903 "the munge key on shared storage cannot be read: is root squashed?"
    as_owner "$key" cat "$key" | put "$HPC_ROOT/etc/munge/munge.key" 400 munge:munge && fresh=1
    [[ -n $HPC_ROOT ]] || chmod 700 /etc/munge
    service_on munge $fresh
}

slurm_files() {
    local name
    pmix_library
    folder "$HPC_ROOT/var/log/slurm" 755 slurm:slurm
    folder "$HPC_ROOT/etc/slurm" 755 root:root
    for name in slurm.conf cgroup.conf topology.conf; do
        if [[ -f $HPC_LINK/etc/slurm/$name ]]; then
            link "$HPC_LINK/etc/slurm/$name" "$HPC_ROOT/etc/slurm/$name"
        elif [[ -L $HPC_ROOT/etc/slurm/$name ]]; then
            rm -f "$HPC_ROOT/etc/slurm/$name"
        fi
    done
}

# Addresses of nodes that do not live, 240.0.x.y: of the block that is reserved for ever (RFC 1112), so that no VPC and no
# peer is in it. (Blocks for documentation are in use in some test networks; 0.0.0.0 and 127.x.y.z would lead to this host.)
HPC_NOWHERE=240.0

# sync_hosts [all]: names of the long-lived nodes and of the compute nodes that live, from the list that the elastic
# daemon keeps. With `all` (management and login nodes) also every name that slurm.conf has: slurmctld looks nodes up
# that do not live, and where a resolver lets it wait it answers nobody for ten seconds a name.
sync_hosts() {
    local living=$HPC_LINK/nodes/hosts
    [[ -f $living ]] || living=/dev/null
    if [[ ${1:-} == all ]]; then
        # A packet to a node that is not there ends here at once instead of waiting for an answer.
        ip route replace unreachable "$HPC_NOWHERE.0.0/16" 2>/dev/null || true
    fi
    awk -v pools="$([[ ${1:-} == all ]] && echo "${HPC_NODES:-}")" -v net="$HPC_NOWHERE" '
        NF >= 2 { print; for (i = 2; i <= NF; i++) lives[$i] = 1 }
        END {
            count = split(pools, pool, " ")
            for (p = 1; p <= count; p++) {
                split(pool[p], part, "/")
                for (n = 1; n <= part[2]; n++) {
                    name = part[1] "-" n
                    if (!(name in lives)) {
                        print net "." int(rows / 250) "." (1 + rows % 250), name
                        rows++
                    }
                }
            }
        }
    ' "$HPC_LINK/etc/hosts.static" "$living" | block "$HPC_ROOT/etc/hosts" "hpc nodes"
}

# tuning: what MPI wants of a node (requirements of the cluster, not of a distribution).
tuning() {
    local half_mib shm_mib
    put "$HPC_ROOT/etc/sysctl.d/90-hpc.conf" 644 root:root <<-'EOF' && { sysctl -q -p "$HPC_ROOT/etc/sysctl.d/90-hpc.conf" || say "some kernel settings cannot be changed on this host"; }
	vm.swappiness = 1
	net.core.somaxconn = 65535
	EOF
    put "$HPC_ROOT/etc/security/limits.d/90-hpc.conf" 644 root:root <<-'EOF' || true
	* soft memlock unlimited
	* hard memlock unlimited
	* soft nofile 65536
	* hard nofile 65536
	* soft stack unlimited
	EOF
    # /dev/shm: 16 GiB, or half of the memory where that is more.
    half_mib=$(awk '/^MemTotal:/ {print int($2 / 2048)}' /proc/meminfo)
    shm_mib=$((half_mib > 16384 ? half_mib : 16384))
    echo "tmpfs /dev/shm tmpfs rw,nosuid,nodev,size=${shm_mib}m 0 0" | block "$HPC_ROOT/etc/fstab" "hpc shm"
    mount -o "remount,size=${shm_mib}m" /dev/shm || say "/dev/shm keeps its size on this host"
}

# Whatever MPI, PMIx, PMI-2 or a library listens on without asking for a port is in the range that members may reach.
mpi_ports() {
    local file=$HPC_ROOT/etc/sysctl.d/91-hpc-ports.conf
    echo "net.ipv4.ip_local_port_range = $HPC_MPI_PORTS" | put "$file" 644 root:root || return 0
    sysctl -q -p "$file" || say "the range of ports cannot be changed on this host: srun of MPICH and Intel MPI needs it"
}

shell_environment() {
    # After modules.sh, which defines the command; exported, so that batch scripts have it without being login shells.
    put "$HPC_ROOT/etc/profile.d/zz-hpc.sh" 644 root:root <<-EOF || true
	# Modules and tools of the cluster.
	if command -v module >/dev/null 2>&1; then
	    module use $HPC_LINK/modulefiles
	    if [ -n "\${BASH_VERSION:-}" ]; then export -f module _module_raw 2>/dev/null || true; fi
	fi
	case ":\$PATH:" in *:$HPC_LINK/scripts/mpi:*) ;; *) PATH=\$PATH:$HPC_LINK/scripts/mpi ;; esac
	EOF
    # A new host key is accepted once; keys live on the nodes' own disks, never on shared homes.
    put "$HPC_ROOT/etc/ssh/ssh_config.d/90-hpc.conf" 644 root:root <<-EOF || true
	Host $HPC_NODE_PATTERNS
	    StrictHostKeyChecking no
	    UserKnownHostsFile /dev/null
	    LogLevel ERROR
	EOF
    put "$HPC_ROOT/etc/ssh/sshd_config.d/90-hpc.conf" 644 root:root <<-'EOF' && { service_reload sshd || true; }
	PasswordAuthentication no
	ChallengeResponseAuthentication no
	PermitRootLogin prohibit-password
	EOF
    return 0
}

administrator_keys() {
    [[ -s $HPC_LINK/etc/authorized_keys ]] || return 0
    folder "$HPC_ROOT/root/.ssh" 700 root:root
    block "$HPC_ROOT/root/.ssh/authorized_keys" "hpc administrators" <"$HPC_LINK/etc/authorized_keys"
    chmod 600 "$HPC_ROOT/root/.ssh/authorized_keys"
}

finish() { say "$1 done, $(wc -l <"$HPC_COUNT") change(s)"; }
