# shellcheck shell=sh
# Shared memory that a killed MPI program of this user left on a node. Put in front of probe.sh and clean.sh, which
# `sh -s` reads on the nodes.

# stale_segments: a file of /dev/shm with a name that MPI gives and that no process has mapped, or `sysv:ID`, one a line.
stale_segments() {
    mapped=$(cat /proc/[0-9]*/maps 2>/dev/null | awk '$6 ~ "/dev/shm/" {print $6}' | sort -u)
    for file in "${HPC_ROOT:-}"/dev/shm/*; do
        [ -f "$file" ] && [ "$(stat -c %u "$file")" = "$(id -u)" ] || continue
        case ${file##*/} in
        vader_segment.* | sm_segment.* | osc_* | ompi* | prte* | pmix* | gds* | psm2_shm* | ucx_shm_* | Intel_MPI* | mpich* | shm-mpi*) ;;
        *) continue ;;
        esac
        printf '%s\n' "$mapped" | grep -qxF "$file" || echo "$file"
    done
    # SysV segments: nobody is attached, and whoever made them is gone.
    awk -v me="$(id -u)" 'NR > 1 && $8 == me && $7 == 0 {print $2, $5}' /proc/sysvipc/shm 2>/dev/null |
        while read -r id maker; do
            [ -d "/proc/$maker" ] || echo "sysv:$id"
        done
}
