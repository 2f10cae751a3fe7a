# shellcheck shell=bash
# The services of a management node: database, slurmdbd, elastic daemon, slurmctld, accounts. Sourced by management.sh.

# PyPI from inside of the VPC, the same mirror that ECS images are set up with.
: "${HPC_PYPI:=http://mirrors.cloud.aliyuncs.com/pypi/simple}"
: "${HPC_VENV:=$HPC_ROOT/usr/local/lib/hpc-elastic}"

pip_install() {
    local host=${HPC_PYPI#*://}
    "$HPC_VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --retries 5 \
        --index-url "$HPC_PYPI" --trusted-host "${host%%[/:]*}" "$@"
}

# MariaDB with a small buffer pool: accounting of a cluster is a few hundred MB, and the node has other work.
database() {
    local file=$HPC_ROOT/etc/mysql/mariadb.conf.d/90-hpc.cnf fresh=0 buffer_mib
    [[ $FAMILY == dnf ]] && file=$HPC_ROOT/etc/my.cnf.d/90-hpc.cnf
    buffer_mib=$(awk '/^MemTotal:/ {m = int($2 / 1024 / 8); print (m < 128 ? 128 : (m > 4096 ? 4096 : m))}' /proc/meminfo)
    # slurmdbd wants a long lock wait and a buffer pool and log that hold its larger transactions.
    put "$file" 644 root:root <<-EOF && fresh=1
	[mysqld]
	bind-address = 127.0.0.1
	skip-name-resolve
	performance_schema = OFF
	innodb_buffer_pool_size = ${buffer_mib}M
	innodb_log_file_size = 64M
	innodb_lock_wait_timeout = 900
	max_allowed_packet = 16M
	EOF
    service_on mariadb $fresh
    retry 6 mysql -e "SELECT 1" >/dev/null || fail HPC917 "MariaDB does not answer: journalctl -u mariadb"
    # On stdin, so that the password is in no process list. IDENTIFIED BY again keeps a changed password in step.
    mysql <<-EOF || fail HPC917 "the accounting database cannot be made"
	CREATE DATABASE IF NOT EXISTS slurm_acct_db;
	CREATE USER IF NOT EXISTS 'slurm'@'localhost' IDENTIFIED BY '$(<"$HPC_INPUT/database.password")';
	ALTER USER 'slurm'@'localhost' IDENTIFIED BY '$(<"$HPC_INPUT/database.password")';
	GRANT ALL ON slurm_acct_db.* TO 'slurm'@'localhost';
	EOF
}

accounting_daemon() {
    local fresh=0 line
    while IFS= read -r line; do
        printf '%s\n' "${line/@DATABASE_PASSWORD@/$(<"$HPC_INPUT/database.password")}"
    done <"$HPC_LINK/etc/slurmdbd.conf" | put "$HPC_ROOT/etc/slurm/slurmdbd.conf" 600 slurm:slurm && fresh=1
    service_on slurmdbd $fresh
    # It makes its tables first, and answers only then.
    retry 12 sacctmgr -n list cluster >/dev/null 2>&1 || fail HPC918 "slurmdbd does not answer: see /var/log/slurm/slurmdbd.log"
    # slurmctld needs its cluster in the database before it starts for the first time.
    if [[ $(sacctmgr -nP list cluster format=cluster) != *"$HPC_CLUSTER"* ]]; then
        sacctmgr -iQ add cluster "$HPC_CLUSTER" >/dev/null || fail HPC918 "the cluster cannot be added to accounting"
        changed "accounting cluster $HPC_CLUSTER"
    fi
}

# Accounts: one for the cluster, and a user in it for everybody who may log in.
accounts() {
    local known name
    if [[ $(sacctmgr -nP list account format=account) != *"$HPC_CLUSTER"* ]]; then
        sacctmgr -iQ add account "$HPC_CLUSTER" Cluster="$HPC_CLUSTER" Description="$HPC_CLUSTER" >/dev/null ||
            fail HPC918 "the account cannot be added to accounting"
        changed "account $HPC_CLUSTER"
    fi
    known=$(sacctmgr -nP list user format=user)
    for name in $HPC_USERS; do
        grep -qx "$name" <<<"$known" && continue
        sacctmgr -iQ add user "$name" Account="$HPC_CLUSTER" Cluster="$HPC_CLUSTER" >/dev/null ||
            fail HPC918 "user $name cannot be added to accounting"
        changed "accounting user $name"
    done
}

# The daemon that starts and releases compute nodes, in a virtual environment of its own, as user slurm.
elastic_daemon() {
    local python code fresh=0 wanted
    python=$(command -v python3.13 || command -v python3.12 || command -v python3.11 || command -v python3)
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail HPC919 "$python is older than 3.11, which the elastic daemon needs"
    if [[ ! -x $HPC_VENV/bin/python ]]; then
        "$python" -m venv "$HPC_VENV" || fail HPC919 "no virtual environment at $HPC_VENV"
        changed "$HPC_VENV"
    fi
    wanted=$(sha256sum <"$HPC_LINK/elastic/requirements.txt")
    if [[ $wanted != "$(cat "$HPC_VENV/.requirements" 2>/dev/null)" ]]; then
        retry 3 pip_install --require-hashes -r "$HPC_LINK/elastic/requirements.txt" ||
            fail HPC919 "the elastic daemon's Python packages cannot be installed from $HPC_PYPI"
        echo "$wanted" >"$HPC_VENV/.requirements"
        changed "packages of the elastic daemon"
        fresh=1
    fi
    code=$("$HPC_VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    if ! diff -rq -x __pycache__ "$HPC_LINK/elastic/hpc" "$code/hpc" >/dev/null 2>&1; then
        rm -rf "$code/hpc"
        cp -r "$HPC_LINK/elastic/hpc" "$code/hpc"
        "$HPC_VENV/bin/python" -m compileall -q "$code/hpc"
        changed "code of the elastic daemon"
        fresh=1
    fi
    local name
    for name in resume suspend; do
        put "$HPC_ROOT/usr/local/sbin/hpc-$name" 755 root:root <<-EOF || true
	#!/bin/sh
	exec $HPC_VENV/bin/python -I -m hpc.elastic.$name "\$@"
	EOF
    done
    folder "$HPC_LINK/state/elastic" 700 slurm:slurm
    local type=notify start="$HPC_VENV/bin/python -I -m hpc.elastic.daemon --settings $HPC_LINK/etc/pools.json"
    if [[ $HPC_BACKUP == yes ]]; then
        # Two management nodes share one state and one lock: the daemon that holds the lock is the only one that starts
        # and releases nodes; the other one waits for it.
        type=simple
        start="/usr/bin/flock --no-fork $HPC_LINK/state/elastic/lock $start --state $HPC_LINK/state/elastic/elastic.sqlite"
    fi
    put "$HPC_ROOT/etc/systemd/system/hpc-elastic.service" 644 root:root <<-EOF && fresh=1
	[Unit]
	Description=Starts and releases compute nodes
	After=network-online.target munge.service slurmctld.service
	Wants=network-online.target
	RequiresMountsFor=$HPC_LINK/etc
	StartLimitIntervalSec=0
	[Service]
	Type=$type
	User=slurm
	RuntimeDirectory=hpc-elastic
	StateDirectory=hpc-elastic
	ExecStart=$start
	Restart=always
	RestartSec=5
	# Purchases under way are waited for; what is not finished then is taken up again at the next start.
	TimeoutStopSec=120
	UMask=0022
	NoNewPrivileges=yes
	CapabilityBoundingSet=
	ProtectSystem=full
	PrivateTmp=yes
	PrivateDevices=yes
	ProtectKernelModules=yes
	ProtectKernelTunables=yes
	ProtectControlGroups=yes
	RestrictSUIDSGID=yes
	RestrictRealtime=yes
	RestrictNamespaces=yes
	LockPersonality=yes
	SystemCallArchitectures=native
	RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
	[Install]
	WantedBy=multi-user.target
	EOF
    if [[ $(sha256sum <"$HPC_LINK/etc/pools.json") != "$(cat "$HPC_VENV/.settings" 2>/dev/null)" ]]; then
        sha256sum <"$HPC_LINK/etc/pools.json" >"$HPC_VENV/.settings"
        fresh=1
    fi
    ((fresh)) && systemctl daemon-reload
    service_on hpc-elastic $fresh || fail HPC919 "the elastic daemon does not start: journalctl -u hpc-elastic"
}

# Parameters of slurm.conf that slurmctld reads only at its start (slurm.conf(5)); the rest is re-read in place.
RESTART='ClusterName|SlurmctldHost|NodeName|SlurmctldPort|SlurmdPort|AuthType|StateSaveLocation|SelectType|ProctrackType|JobAcctGatherType|AccountingStorage[A-Za-z]*|TopologyPlugin|SchedulerType|TaskPlugin|MpiDefault|SlurmctldParameters'

controller() {
    local state=$HPC_ROOT/var/spool/slurmctld used=$HPC_ROOT/var/lib/hpc/slurm.conf.used lines
    [[ $HPC_BACKUP == yes ]] && state=$HPC_LINK/state/slurmctld
    folder "$state" 700 slurm:slurm
    folder "$HPC_ROOT/var/lib/hpc" 755 root:root
    put "$HPC_ROOT/etc/systemd/system/slurmctld.service.d/90-hpc.conf" 644 root:root <<-'EOF' && systemctl daemon-reload
	[Unit]
	# slurm.conf lies on shared storage: at boot the distribution's condition on it would be asked before that is mounted,
	# and the controller be left out for good.
	ConditionPathExists=
	After=slurmdbd.service remote-fs.target
	RequiresMountsFor=/opt/hpc
	[Service]
	Restart=on-failure
	RestartSec=5
	# It saves its state before it ends.
	TimeoutStopSec=120
	EOF
    service_on slurmctld
    if [[ -f $used ]] && ! cmp -s "$used" "$HPC_LINK/etc/slurm/slurm.conf"; then
        lines=$(diff "$used" "$HPC_LINK/etc/slurm/slurm.conf" | sed -nE 's/^[<>] //p' || true)
        if grep -qE "^($RESTART)=" <<<"$lines"; then
            service_on slurmctld 1
        else
            scontrol reconfigure || fail HPC911 "slurmctld does not take the new slurm.conf: see /var/log/slurm/slurmctld.log"
            changed "slurmctld reconfigured"
        fi
    fi
    cp "$HPC_LINK/etc/slurm/slurm.conf" "$used"
    retry 8 scontrol ping >/dev/null 2>&1 || fail HPC911 "slurmctld does not run: see /var/log/slurm/slurmctld.log"
}
