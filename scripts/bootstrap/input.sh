# shellcheck shell=bash
# How management.sh and login.sh get what is only known at run time. Sourced after lib.sh.

# read_input: stdin has one item a line, `NAME BASE64`. Items become files of mode 600 in a folder that only root reads
# and that goes when the script ends, so that no secret is ever an argument, a variable of a process, or in the log.
read_input() {
    local name data
    HPC_INPUT=$(mktemp -d "${TMPDIR:-/tmp}/hpc-input.XXXXXX")
    chmod 700 "$HPC_INPUT"
    trap 'rm -rf "$HPC_INPUT"' EXIT
    while read -r name data; do
        [[ $name =~ ^[a-z][a-z0-9._-]*$ ]] || continue
        (umask 077 && base64 -d <<<"$data" >"$HPC_INPUT/$name") || fail HPC915 "item $name of the input is not base64"
    done
    for name in facts.env facts.json mounts share; do
        [[ -s $HPC_INPUT/$name ]] || fail HPC915 "the input has no $name"
    done
    # shellcheck disable=SC2034  # used by the script that sources this
    HPC_SHARE=$HPC_ROOT$(<"$HPC_INPUT/share")
}

# cloud-init may still be making users and keys when SSH answers already.
wait_for_first_boot() {
    command -v cloud-init >/dev/null || return 0
    timeout 300 cloud-init status --wait >/dev/null 2>&1 || say "cloud-init has not finished cleanly; going on"
}

# Names of compute nodes reach a long-lived node within a few seconds of their start.
sync_timer() {
    local fresh=0
    put "$HPC_ROOT/etc/systemd/system/hpc-hosts.service" 644 root:root <<-EOF && fresh=1
	[Unit]
	Description=Names of the cluster's nodes
	[Service]
	Type=oneshot
	ExecStart=/bin/bash $HPC_LINK/bootstrap/sync-hosts.sh --all
	# Storage that does not answer must not leave it hanging for ever.
	TimeoutStartSec=60
	NoNewPrivileges=yes
	PrivateTmp=yes
	ProtectSystem=full
	ReadWritePaths=/etc
	CapabilityBoundingSet=CAP_NET_ADMIN CAP_DAC_OVERRIDE CAP_CHOWN CAP_FOWNER
	EOF
    put "$HPC_ROOT/etc/systemd/system/hpc-hosts.timer" 644 root:root <<-'EOF' && fresh=1
	[Unit]
	Description=Names of the cluster's nodes
	[Timer]
	OnBootSec=10
	OnUnitActiveSec=5
	AccuracySec=1
	[Install]
	WantedBy=timers.target
	EOF
    ((fresh)) && systemctl daemon-reload
    service_on hpc-hosts.timer
}
