#!/bin/bash
# Sets up a compute node: at its first boot from user data, or with --bake to prepare an image (packages and driver only).
#   compute.sh --pool POOL | compute.sh --bake [--interconnect erdma|tcp]
set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"
# shellcheck source=distribution.sh
. "$here/distribution.sh"
# shellcheck source=erdma.sh
. "$here/erdma.sh"

bake=0 pool="" interconnect=tcp
while (($#)); do
    case $1 in
    --bake) bake=1 ;;
    --pool) pool=${2:-} && shift ;;
    --interconnect) interconnect=${2:-} && shift ;;
    *) echo "usage: compute.sh --pool POOL | --bake [--interconnect erdma|tcp]" >&2 && exit 2 ;;
    esac
    shift
done

# An instance is told which node it is by its host name, or, when it was launched before that was decided, by a file
# that the elastic daemon writes on shared storage.
node_name() {
    local name token id file i
    name=$(hostname -s)
    if [[ $name =~ ^$pool-[1-9][0-9]*$ ]]; then
        HPC_NODE_NAME=$name
        return
    fi
    token=$(curl -fsS --max-time 5 -X PUT -H "X-aliyun-ecs-metadata-token-ttl-seconds: 600" \
        "${HPC_METADATA:-http://100.100.100.200}/latest/api/token" || true)
    id=$(retry 5 curl -fsS --max-time 5 -H "X-aliyun-ecs-metadata-token: $token" \
        "${HPC_METADATA:-http://100.100.100.200}/latest/meta-data/instance-id") ||
        fail HPC908 "the metadata service does not say which instance this is"
    file=$HPC_LINK/nodes/$id.name
    for ((i = 0; i < ${HPC_NAME_ATTEMPTS:-120}; i++)); do
        # Listing the folder makes an NFS client look again instead of remembering that there was no such file.
        ls "$HPC_LINK/nodes" >/dev/null
        [[ -s $file ]] && break
        sleep "${HPC_PAUSE:-1}"
    done
    [[ -s $file ]] || fail HPC909 "instance $id was given no node name within ${HPC_NAME_ATTEMPTS:-120} s"
    HPC_NODE_NAME=$(<"$file")
    hostnamectl set-hostname "$HPC_NODE_NAME"
    changed "host name $HPC_NODE_NAME"
}

start_log compute.sh
detect
if ((bake)); then
    nfs_client
    need node compute
    slurm_release slurmd
    pmix_library
    no_automatic_updates
    if [[ $interconnect == erdma ]]; then erdma_driver; fi
    # What must differ on every node made from the image.
    rm -f "$HPC_ROOT/etc/munge/munge.key" "$HPC_ROOT"/etc/ssh/ssh_host_*
    command -v cloud-init >/dev/null && cloud-init clean --logs
    finish compute.sh
    exit 0
fi

# shellcheck disable=SC1091
. "$HPC_LINK/etc/cluster.env"
# shellcheck disable=SC1091
. "$HPC_LINK/etc/facts.env"
variable=HPC_POOL_${pool//-/_}
interconnect=${!variable:-}
[[ -n $interconnect ]] || fail HPC910 "pool ${pool:-(none)} is not in the cluster's configuration"
node_name
as_owner "$HPC_LINK/nodes" rm -f "$HPC_LINK/nodes/$HPC_NODE_NAME.failed" || say "$HPC_LINK/nodes cannot be written"
mount_all "$HPC_LINK/etc/mounts"
sync_hosts
need node compute
slurm_release slurmd
no_automatic_updates
tuning
mpi_ports
shell_environment
administrator_keys
make_users
slurm_account
folder "$HPC_ROOT/var/spool/slurmd" 755 slurm:slurm
munge_key
slurm_files
time_in_sync
firewall compute
selinux
if [[ $interconnect == erdma ]]; then
    erdma
else
    say "pool $pool uses TCP: no eRDMA device is needed"
fi
# The unit's own limit is what jobs inherit.
put "$HPC_ROOT/etc/systemd/system/slurmd.service.d/90-hpc.conf" 644 root:root <<-'EOF' && systemctl daemon-reload
	[Unit]
	# As for slurmctld: slurm.conf lies on shared storage.
	ConditionPathExists=
	After=remote-fs.target
	RequiresMountsFor=/opt/hpc
	[Service]
	Restart=on-failure
	RestartSec=5
	LimitMEMLOCK=infinity
	LimitSTACK=infinity
	EOF
service_on slurmd
finish compute.sh
