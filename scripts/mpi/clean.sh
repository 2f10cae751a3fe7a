# shellcheck shell=sh
# Removes what dead runs of this user left on a node: read by `sh -s` there after segments.sh, one line for each thing.
#   sh -s -- ORIGIN JOBS RUNS AGE
# ORIGIN: host that run-mpi runs on. JOBS: ids of Slurm jobs that live, separated by commas, or ? where Slurm cannot be
# asked. RUNS: ids of the runs of ORIGIN that live (HPC_RUN_ID, `host:pid:start`), separated by commas.
# AGE: seconds that a process must have lived; a job that started after the lists were made is not in them.
# Never touched: processes of others, those of no job or run, those of jobs and runs that live or of which that is not known.
origin=$1 jobs=,$2, runs=,$3, age=$4
LC_ALL=C
export LC_ALL

# The number of a process's parent.
parent() { sed 's/.*) [A-Za-z] //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f1; }

# Seconds that a process has lived.
age_of() {
    awk -v hertz="$(getconf CLK_TCK)" 'NR == FNR {up = $1; next} {sub(/.*\) /, ""); print int(up - $20 / hertz)}' \
        /proc/uptime "/proc/$1/stat" 2>/dev/null
}

# dead JOB RUN
dead() {
    case $2 in
    "$origin":*) case $runs in *,"$2",*) ;; *) return 0 ;; esac ;;
    esac
    [ -n "$1" ] && [ "$jobs" != ",?," ] || return 1
    case $jobs in *,"$1",*) return 1 ;; esac
    return 0
}

# This shell and what it hangs on.
own=" $$ "
pid=$(parent $$)
while [ -n "$pid" ] && [ "$pid" -gt 1 ]; do
    own="$own$pid "
    pid=$(parent "$pid")
done

victims="" me=$(id -u)
for folder in /proc/[0-9]*; do
    pid=${folder#/proc/}
    case $own in *" $pid "*) continue ;; esac
    [ "$(stat -c %u "$folder" 2>/dev/null)" = "$me" ] || continue
    variables=$(tr '\0' '\n' 2>/dev/null <"$folder/environ" | grep -E '^(SLURM_JOB_ID|HPC_RUN_ID)=') || continue
    job=$(printf '%s\n' "$variables" | sed -n 's/^SLURM_JOB_ID=//p')
    run=$(printf '%s\n' "$variables" | sed -n 's/^HPC_RUN_ID=//p')
    dead "$job" "$run" || continue
    [ "$(age_of "$pid" || echo 0)" -ge "$age" ] 2>/dev/null || continue
    echo "process $pid $(tr '\0' ' ' 2>/dev/null <"$folder/cmdline" | cut -c1-60)"
    victims="$victims $pid"
done
if [ -n "$victims" ]; then
    # shellcheck disable=SC2086  # a list
    kill -TERM $victims 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        left=""
        for pid in $victims; do [ -d "/proc/$pid" ] && left="$left $pid"; done
        [ -n "$left" ] || break
        sleep 0.5
    done
    # shellcheck disable=SC2086
    [ -z "$left" ] || kill -KILL $left 2>/dev/null
fi

stale_segments | while read -r segment; do
    case $segment in
    sysv:*) ipcrm -m "${segment#sysv:}" 2>/dev/null ;;
    *) rm -f "$segment" ;;
    esac && echo "segment $segment"
done
exit 0
