# shellcheck shell=bash
# Elastic RDMA on a compute node: driver, module options, device, counters. Sourced after lib.sh and distribution.sh.

# Version and checksum as the product's own page gives them
# (https://help.aliyun.com/en/ecs/user-guide/erdma-usage, 2026-03-31).
: "${HPC_ERDMA_VERSION:=1.5.7}"
: "${HPC_ERDMA_SHA256:=cb44f4c4aaaabfbd81224c85a9e7889732bda26cc832ff70ecc0559bcc14165c}"
: "${HPC_ERDMA_MIRROR:=http://mirrors.cloud.aliyuncs.com/erdma}"

erdma_driver() {
    modinfo erdma >/dev/null 2>&1 && return 0
    local work archive
    need erdma
    work=$(mktemp -d)
    archive=$work/erdma_installer-$HPC_ERDMA_VERSION.tar.gz
    retry 4 curl -fsS --max-time 120 -o "$archive" "$HPC_ERDMA_MIRROR/${archive##*/}" ||
        fail HPC920 "the eRDMA driver cannot be loaded from $HPC_ERDMA_MIRROR"
    echo "$HPC_ERDMA_SHA256  $archive" | sha256sum --check --status ||
        fail HPC921 "the eRDMA driver $HPC_ERDMA_VERSION has another checksum than expected: not installed"
    tar -xzf "$archive" -C "$work" --strip-components=1
    (cd "$work" && ERDMA_CM_NO_BOUND_IF=1 ./install.sh --batch) ||
        fail HPC922 "the eRDMA driver $HPC_ERDMA_VERSION does not build on kernel $(uname -r): use a baked image"
    rm -rf "$work"
    changed "eRDMA driver $HPC_ERDMA_VERSION"
}

# Options take effect when the module is loaded.
erdma_module() {
    local fresh=0
    # Compatibility mode gives RoCE-like addresses and the datagram queue pairs that UCX wants.
    echo "options erdma compat_mode=Y" | put "$HPC_ROOT/etc/modprobe.d/hpc-erdma.conf" 644 root:root && fresh=1
    echo erdma | put "$HPC_ROOT/etc/modules-load.d/hpc-erdma.conf" 644 root:root || true
    if ((fresh)) && [[ -d $HPC_ROOT/sys/module/erdma ]]; then
        modprobe -r erdma || fail HPC923 "the eRDMA module is in use and keeps its old options: reboot the node"
    fi
    modprobe erdma || fail HPC923 "the eRDMA module does not load on kernel $(uname -r)"
}

# A node without the device, or with one whose port is down, is refused: MPI would quietly use TCP.
erdma_verify() {
    local device=$HPC_ROOT/sys/class/infiniband/erdma_0 mode=$HPC_ROOT/sys/module/erdma/parameters/compat_mode
    [[ -d $device ]] ||
        fail HPC924 "no eRDMA device: the interface was not made with traffic mode HighPerformance, or the type has none"
    grep -q ACTIVE "$device/ports/1/state" || fail HPC925 "the eRDMA port is not active ($(cat "$device/ports/1/state"))"
    [[ ! -r $mode || $(cat "$mode") == Y ]] || fail HPC926 "the eRDMA module runs without compat_mode"
    [[ -r $device/ports/1/hw_counters/hw_rx_bytes_cnt ]] ||
        fail HPC927 "the eRDMA device has no counters: a fall-back to TCP could not be seen"
    say "eRDMA device erdma_0 is active"
}

erdma() {
    erdma_driver
    erdma_module
    erdma_verify
}
