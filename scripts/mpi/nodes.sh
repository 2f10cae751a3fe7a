# shellcheck shell=bash
# Which nodes and how many ranks, from Slurm or from a hostfile. Sourced by run-mpi.

# read_nodes HOSTFILE: sets NODES (in order, each once) and SLOTS (ranks by node). Without a hostfile they come from the
# Slurm job that this runs in. A hostfile has a line `NODE [slots=N]`, or `NODE:N`, or the node once for each rank.
declare -a NODES=()
declare -A SLOTS=()
read_nodes() {
    local file=$1 line node count
    if [[ -z $file ]]; then
        slurm_nodes
        return
    fi
    [[ -r $file ]] || refuse 2 HPC960 "the hostfile $file cannot be read"
    while IFS= read -r line || [[ -n $line ]]; do
        line=${line%%#*}
        [[ $line =~ ^[[:space:]]*([A-Za-z0-9._-]+)(:([0-9]+))?([[:space:]].*)?$ ]] || {
            [[ -z ${line//[[:space:]]/} ]] && continue
            refuse 2 HPC960 "the hostfile $file has a line that names no node: $line"
        }
        node=${BASH_REMATCH[1]} count=${BASH_REMATCH[3]:-}
        if [[ -z $count && ${BASH_REMATCH[4]:-} =~ slots=([0-9]+) ]]; then count=${BASH_REMATCH[1]}; fi
        [[ -n ${SLOTS[$node]:-} ]] || NODES+=("$node")
        SLOTS[$node]=$((${SLOTS[$node]:-0} + ${count:-1}))
    done <"$file"
    ((${#NODES[@]})) || refuse 2 HPC960 "the hostfile $file names no node"
}

# SLURM_TASKS_PER_NODE is like `2(x3),1`.
slurm_nodes() {
    local part count times i index=0
    [[ -n ${SLURM_JOB_NODELIST:-} ]] || refuse 2 HPC960 "no nodes: run inside of a Slurm job, or give --hostfile"
    mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
    ((${#NODES[@]})) || refuse 2 HPC960 "Slurm does not say which nodes $SLURM_JOB_NODELIST are"
    for part in ${SLURM_TASKS_PER_NODE//,/ }; do
        [[ $part =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]] || continue
        count=${BASH_REMATCH[1]} times=${BASH_REMATCH[3]:-1}
        for ((i = 0; i < times && index < ${#NODES[@]}; i++, index++)); do SLOTS[${NODES[index]}]=$count; done
    done
    for part in "${NODES[@]}"; do SLOTS[$part]=${SLOTS[$part]:-1}; done
}

slots_total() {
    local node total=0
    for node in "${NODES[@]}"; do total=$((total + ${SLOTS[$node]})); done
    echo "$total"
}
