# shellcheck shell=bash
# The only place that knows apt from dnf: package names, repositories, services, firewall. Sourced after lib.sh.

# Of openhpc-2.asc beside this file.
HPC_OPENHPC_KEY_SHA256=7423f16590a64bc9bf3024651edb662d89e0cab804233ed92cb81bdc860e27ef

# detect: sets FAMILY (apt, dnf), OS (alinux-3, rocky-9, ubuntu-24.04, ...) from os-release.
detect() {
    local ID="" VERSION_ID=""
    # shellcheck disable=SC1091
    . "$HPC_ROOT/etc/os-release"
    case $ID in
    debian | ubuntu) FAMILY=apt OS=$ID-$VERSION_ID ;;
    alinux) FAMILY=dnf OS=alinux-${VERSION_ID%%.*} ;;
    rocky | almalinux | rhel | centos) FAMILY=dnf OS=rocky-${VERSION_ID%%.*} ;;
    *) fail HPC904 "no support for ${ID:-unknown} ${VERSION_ID:-}: use alinux-3, rocky-9, ubuntu or debian-12" ;;
    esac
    # The Slurm of EPEL 8, which fits Alibaba Cloud Linux 3, is too old; OpenHPC's is not: 20.02 in its first repository,
    # 23.11 in the updates. A site without a way to the Internet names its own mirror of the two.
    if [[ $OS == alinux-3 ]]; then
        : "${HPC_SLURM_REPOSITORY:=https://repos.openhpc.community/OpenHPC/2/EL_8 https://repos.openhpc.community/OpenHPC/2/updates/EL_8}"
    fi
}

# Packages of each part, by family. Names in OpenHPC's repository carry its suffix.
packages() {
    local slurm=""
    [[ $FAMILY == dnf && ${HPC_SLURM_REPOSITORY:-} == *[Oo]pen[Hh][Pp][Cc]* ]] && slurm=-ohpc
    case $FAMILY:$1 in
    # libpmi2 is what Intel MPI is started with; slurm-client has the users' commands.
    apt:node) echo munge slurm-client libpmix2 libpmi2-0 environment-modules chrony procps ;;
    dnf:node) echo munge "slurm$slurm" "pmix$slurm" "$([[ -n $slurm ]] && echo slurm-libpmi-ohpc || echo slurm-libs)" environment-modules chrony procps-ng policycoreutils ;;
    apt:compute) echo slurmd libibverbs1 librdmacm1 ibverbs-providers numactl ;;
    dnf:compute) echo "slurm-slurmd$slurm" libibverbs librdmacm numactl ;;
    apt:management) echo slurmctld slurmdbd mariadb-server python3 python3-venv ;;
    dnf:management) echo "slurm-slurmctld$slurm" "slurm-slurmdbd$slurm" mariadb-server python3.11 ;;
    apt:login) echo build-essential gfortran cmake git rsync ;;
    dnf:login) echo gcc gcc-c++ gcc-gfortran make cmake git rsync ;;
    apt:nfs) echo nfs-common ;;
    dnf:nfs) echo nfs-utils ;;
    apt:erdma) echo debhelper autotools-dev dkms libnl-3-dev libnl-route-3-dev cmake "linux-headers-$(uname -r)" ;;
    dnf:erdma) echo "kernel-devel-$(uname -r)" gcc-c++ dkms cmake ;;
    esac
}

# A node's packages do not change by themselves: no timers that update in the background (requirement A1).
no_automatic_updates() {
    local unit
    for unit in apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service dnf-automatic.timer; do
        systemctl is-enabled --quiet "$unit" 2>/dev/null || continue
        systemctl disable --quiet --now "$unit"
        changed "$unit disabled"
    done
}

installed() {
    case $FAMILY in
    apt) [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]] ;;
    dnf) rpm -q --quiet "$1" ;;
    esac
}

# repositories: what the packages above need beyond the distribution's own, from the in-region mirrors.
repositories() {
    [[ $FAMILY == dnf ]] || return 0
    case $OS in
    alinux-3) installed epel-aliyuncs-release || install_now epel-aliyuncs-release ;;
    rocky-*)
        installed epel-release || install_now epel-release
        dnf config-manager --set-enabled crb
        # Outside hosts name the mirror network; nodes without a way to the Internet need the one inside of the VPC.
        sed -i -E 's|^metalink=|#metalink=|; s|^#?baseurl=https?://[^/]+/pub/epel|baseurl=http://mirrors.cloud.aliyuncs.com/epel|' \
            "$HPC_ROOT"/etc/yum.repos.d/epel*.repo
        ;;
    esac
    slurm_repository
}

# slurm_repository: the repositories that HPC_SLURM_REPOSITORY names (one or more, separated by spaces), with the key that
# their packages are signed with. A mirror of OpenHPC's keeps OpenHPC's signatures; for any other,
# HPC_SLURM_KEY (file or address) and HPC_SLURM_KEY_SHA256 name the key. Nothing is installed without a signature.
slurm_repository() {
    [[ -n ${HPC_SLURM_REPOSITORY:-} ]] || return 0
    local key=${HPC_SLURM_KEY:-} sum=${HPC_SLURM_KEY_SHA256:-} url number=0 file text=""
    if [[ -z $key && $HPC_SLURM_REPOSITORY == *[Oo]pen[Hh][Pp][Cc]* ]]; then
        # Fingerprint 5392 744D 3C54 3ED5 7847 65E6 8A30 6019 DA56 5C6C, as branch 2.x of github.com/openhpc/ohpc has it
        # (components/admin/ohpc-release/SOURCES/RPM-GPG-KEY-OpenHPC-2).
        key=$(dirname "${BASH_SOURCE[0]}")/openhpc-2.asc sum=$HPC_OPENHPC_KEY_SHA256
    fi
    [[ -n $key && -n $sum ]] ||
        fail HPC936 "no key for the packages of $HPC_SLURM_REPOSITORY: give HPC_SLURM_KEY and HPC_SLURM_KEY_SHA256"
    file=$(mktemp)
    if [[ $key == http*://* ]]; then
        retry 4 curl -fsS --max-time 60 -o "$file" "$key" || fail HPC937 "the key of Slurm's packages cannot be loaded from $key"
    else
        cp "$key" "$file" || fail HPC937 "the key of Slurm's packages is not at $key"
    fi
    echo "$sum  $file" | sha256sum --check --status ||
        fail HPC938 "the key of Slurm's packages ($key) has another checksum than expected: nothing is installed"
    put "$HPC_ROOT/etc/pki/rpm-gpg/RPM-GPG-KEY-hpc-slurm" 644 root:root <"$file" || true
    rm -f "$file"
    for url in $HPC_SLURM_REPOSITORY; do
        number=$((number + 1))
        text+="[hpc-slurm-$number]
name=Slurm $number
baseurl=$url
enabled=1
gpgcheck=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-hpc-slurm
"
    done
    printf '%s' "$text" | put "$HPC_ROOT/etc/yum.repos.d/hpc-slurm.repo" 644 root:root || true
    retry 3 dnf -q --disablerepo='*' --enablerepo='hpc-slurm-*' makecache ||
        fail HPC939 "Slurm's packages are not to be had from $HPC_SLURM_REPOSITORY: name a mirror that nodes reach, or use a baked image"
}

install_now() {
    case $FAMILY in
    apt)
        # A key pair's first boot may still hold the lock: wait for it.
        DEBIAN_FRONTEND=noninteractive apt-get -qqy -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 \
            -o Dpkg::Options::=--force-confold --no-install-recommends install "$@"
        ;;
    dnf) dnf -qy --setopt=install_weak_deps=False install "$@" ;;
    esac
}

# need PART...: install what is missing of the parts, in one go. Services do not start by themselves.
need() {
    local part package missing=()
    for part in "$@"; do
        for package in $(packages "$part"); do
            installed "$package" || missing+=("$package")
        done
    done
    ((${#missing[@]})) || return 0
    repositories
    if [[ $FAMILY == apt ]]; then
        # Without the option a mirror that is away is a warning, and the failure comes later, without its cause.
        retry 4 apt-get -qq -o APT::Update::Error-Mode=any update || fail HPC905 "the package mirror does not answer: check the route to mirrors.cloud.aliyuncs.com"
        # Packages would start their services with their own configuration.
        printf '#!/bin/sh\nexit 101\n' >"$HPC_ROOT/usr/sbin/policy-rc.d"
        chmod 755 "$HPC_ROOT/usr/sbin/policy-rc.d"
    fi
    if ! retry 3 install_now "${missing[@]}"; then
        rm -f "$HPC_ROOT/usr/sbin/policy-rc.d"
        fail HPC906 "packages cannot be installed: ${missing[*]}"
    fi
    rm -f "$HPC_ROOT/usr/sbin/policy-rc.d"
    changed "installed ${missing[*]}"
}

# Slurm's PMIx plugin loads libpmix.so, the unversioned name, without which every job step crashes. On apt hosts only the
# -dev package has it, which brings forty others: a link does.
pmix_library() {
    local folder
    [[ $FAMILY == apt ]] || return 0
    for folder in "$HPC_ROOT"/usr/lib/*/pmix2/lib; do
        [[ -e $folder/libpmix.so.2 && ! -e $folder/libpmix.so ]] || continue
        ln -s libpmix.so.2 "$folder/libpmix.so"
        changed "$folder/libpmix.so"
    done
}

# An NFS client only where there is none: local hosts bring their own mount helper, which the package would hide.
nfs_client() {
    command -v mount.nfs >/dev/null || need nfs
}

# slurm_release FLAG-PROGRAM: refuse a Slurm that is older than what slurm.conf is written for.
slurm_release() {
    local text release
    text=$("$1" -V 2>/dev/null || true)
    release=$(sed -nE 's/^.* ([0-9]+)\.0*([0-9]+).*$/\1 \2/p' <<<"$text")
    # shellcheck disable=SC2086
    set -- $release
    (($# == 2)) || fail HPC907 "Slurm does not say its release ($text)"
    (($1 * 100 + $2 >= 2205)) || fail HPC907 "$text is too old, 22.05 is the least: give a repository with a newer one (HPC_SLURM_REPOSITORY)"
}

service_name() {
    case $FAMILY:$1 in
    apt:sshd) echo ssh ;;
    dnf:chrony) echo chronyd ;;
    *) echo "$1" ;;
    esac
}

# service_on NAME [FRESH]: enabled and running; restarted when it ran already and FRESH is 1 (its files changed).
service_on() {
    local name
    name=$(service_name "$1")
    systemctl is-enabled --quiet "$name" 2>/dev/null || { systemctl enable --quiet "$name" && changed "$name enabled"; }
    if ! systemctl is-active --quiet "$name"; then
        systemctl start "$name" && changed "$name started"
    elif ((${2:-0})); then
        systemctl restart "$name" && changed "$name restarted"
    fi
}

service_reload() { systemctl reload "$(service_name "$1")"; }

time_in_sync() {
    # A host that may not set its clock (a container lacks CAP_SYS_TIME, bit 25) follows the machine's.
    if ((!(0x$(awk '/^CapEff:/ {print $2}' /proc/self/status) >> 25 & 1))); then
        say "this host has no clock of its own to keep in sync"
        return 0
    fi
    service_on chrony
}

# firewall ROLE: where firewalld runs, the same as the security groups: members of the VPC, and SSH on login nodes.
firewall() {
    command -v firewall-cmd >/dev/null && systemctl is-active --quiet firewalld || return 0
    local zone=hpc
    if ! firewall-cmd --permanent --get-zones | grep -qw $zone; then
        firewall-cmd --quiet --permanent --new-zone=$zone
        firewall-cmd --quiet --permanent --zone=$zone --set-target=ACCEPT
        changed "firewall zone $zone"
    fi
    if ! firewall-cmd --quiet --permanent --zone=$zone --query-source="$HPC_VPC_CIDR"; then
        firewall-cmd --quiet --permanent --zone=$zone --add-source="$HPC_VPC_CIDR"
        [[ $1 == login ]] || firewall-cmd --quiet --permanent --zone=public --remove-service=ssh
        firewall-cmd --quiet --reload
        changed "firewall: members of $HPC_VPC_CIDR"
    fi
}

# selinux: stays enforcing; homes on NFS have to be allowed.
selinux() {
    command -v getenforce >/dev/null && [[ $(getenforce) != Disabled ]] || return 0
    if [[ $(getsebool use_nfs_home_dirs) != *on ]]; then
        setsebool -P use_nfs_home_dirs on
        changed "SELinux use_nfs_home_dirs"
    fi
}
