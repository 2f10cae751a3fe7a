# shellcheck shell=sh
# What check-nodes wants to know of a node: read by `sh -s` there after segments.sh, one `KEY VALUE` a line. Only looks.
#   sh -s -- ORIGIN MPIRUN MOUNTS    ORIGIN: host to log in to on the way back, - for none; MPIRUN: path, - for none;
#                                    MOUNTS: mount points, separated by colons, - for none
origin=${1:--} mpirun=${2:--} mounts=${3:--}
root=${HPC_ROOT:-}
LC_ALL=C
export LC_ALL

echo "clock $(date +%s.%N)"
echo "hostname $(hostname)"
echo "cpus $(nproc 2>/dev/null || grep -c '^processor' "$root/proc/cpuinfo")"
echo "model $(uname -m) $(sed -n 's/^model name[[:space:]]*: //p; s/^CPU part[[:space:]]*: //p' "$root/proc/cpuinfo" | sort -u | tr '\n' ' ')"
echo "load $(cut -d' ' -f1 <"$root/proc/loadavg")"
awk '/^MemTotal:/ {print "memory_kib", $2} /^MemAvailable:/ {print "available_kib", $2}' "$root/proc/meminfo"
df -Pk "$root/dev/shm" 2>/dev/null | awk 'NR == 2 {print "shm_kib", $2; print "shm_free_kib", $4}'

stale_segments | sed 's/^/stale /'

if [ "$mounts" != - ]; then
    printf '%s\n' "$mounts" | tr : '\n' | while read -r path; do
        # A server that is away lets a look at its files wait for ever: ask the kernel's list first, then look, bounded.
        if ! awk -v path="$path" '$2 == path {found = 1} END {exit !found}' "$root/proc/mounts"; then
            echo "unmounted $path"
        elif ! timeout 10 stat -t "$path" >/dev/null 2>&1; then
            echo "hanging $path"
        fi
    done
fi
if [ "$mpirun" != - ]; then
    if [ -x "$mpirun" ]; then
        echo "mpi $("$mpirun" --version 2>&1 | head -1)"
    else
        echo "mpi none"
    fi
fi
for device in "$root"/sys/class/infiniband/erdma_*; do
    [ -d "$device" ] || continue
    echo "erdma ${device##*/} $(cat "$device/ports/1/state" 2>/dev/null)"
    echo "erdma_bytes $(cat "$device/ports/1/hw_counters/hw_rx_bytes_cnt" 2>/dev/null || echo -1)"
done
if [ "$origin" != - ]; then
    if timeout 20 ssh -o BatchMode=yes -o ConnectTimeout=10 "$origin" true </dev/null >/dev/null 2>&1; then
        echo "back yes"
    else
        echo "back no"
    fi
fi
echo "end 1"
