"""check-nodes, run-mpi and restart-mpi: real programs, processes and shared memory; a stand-in for ssh."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hpc.paths import PROJECT_ROOT
from tests.scripts.test_mpi_stacks import MODULES_INIT, stacks  # noqa: F401  (a fixture)

TOOLS = PROJECT_ROOT / "scripts/mpi"

#: Runs the command here, as the node that is named: what `nodes/NAME` holds stands for the root of that node.
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do [[ $1 == -o ]] && shift; shift; done
node=$1
shift
echo "$node $*" >>"$SITE/ssh"
here=${FAKE_NODE:-}
if [[ -e $SITE/down/$node || ( -n $here && -e $SITE/no-way-back/$here ) ]]; then
    echo "ssh: connect to host $node: No route" >&2
    exit 255
fi
export FAKE_NODE=$node
[[ -d $SITE/nodes/$node ]] && export HPC_ROOT=$SITE/nodes/$node
[[ -f $SITE/clock/$node ]] && export FAKETIME=$(<"$SITE/clock/$node")
exec sh -c "$*"
"""

#: The time of a node whose clock is off.
DATE = """#!/bin/sh
if [ -n "$FAKETIME" ] && [ "$1" = +%s.%N ]; then
    awk -v now="$(/bin/date +%s.%N)" -v off="$FAKETIME" 'BEGIN {printf "%.3f\\n", now + off}'
else
    exec /bin/date "$@"
fi
"""

#: A tmpfs of the size that a node has.
DF = """#!/bin/sh
[ -d "$2" ] || exit 1
echo "Filesystem 1024-blocks Used Available Capacity Mounted on"
echo "tmpfs 2097152 0 $(cat "$HPC_ROOT/shm-free" 2>/dev/null || echo 2097152) 0% /dev/shm"
"""

#: Starts the program once for each rank, with the ranks' numbers, as any mpirun does.
MPIRUN = """#!/bin/bash
[[ $1 == --version ]] && { cat "${HPC_ROOT:-$SITE}/mpi-version" 2>/dev/null || echo "mpirun (test) 1.0"; exit; }
echo "$*" >>"$SITE/mpirun"
while [[ $1 == -* ]]; do
    case $1 in -np | -n) ranks=$2 ;; --hostfile | -f) cp "$2" "$SITE/machines" ;; esac
    shift 2
done
trap 'kill $(jobs -p) 2>/dev/null' TERM
for ((rank = 0; rank < ranks; rank++)); do RANK=$rank "$@" & done
code=0
for job in $(jobs -p); do wait "$job" || code=$?; done
exit $code
"""


@dataclass
class Site:
    """Three nodes that ssh reaches, a work folder, and a cluster folder."""

    folder: Path

    def run(self, tool: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(TOOLS / tool), *words],
            cwd=self.folder / "work",
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "SITE": str(self.folder),
            "HPC_LINK": str(self.folder / "cluster"),
        }

    def node(self, name: str, **files: str) -> Path:
        """A node of its own: the machine's files, and what is given instead (`proc_loadavg` for proc/loadavg)."""
        root = self.folder / "nodes" / name
        for path in ("proc/cpuinfo", "proc/loadavg", "proc/meminfo", "proc/mounts"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(Path("/", path).read_text())
        (root / "proc/loadavg").write_text("0.01 0.01 0.01 1/100 1000\n")
        (root / "proc/meminfo").write_text("MemTotal: 4194304 kB\nMemAvailable: 4000000 kB\n")
        (root / "dev/shm").mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            (root / path.replace("_", "/")).write_text(text)
        return root

    def mark(self, kind: str, node: str, text: str = "") -> None:
        (self.folder / kind).mkdir(exist_ok=True)
        (self.folder / kind / node).write_text(text)

    def hostfile(self, text: str = "n-1 slots=2\nn-2 slots=1\n") -> str:
        (self.folder / "hostfile").write_text(text)
        return str(self.folder / "hostfile")

    def summary(self) -> dict[str, Any]:
        files = sorted((self.folder / "work/logs").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return dict(json.loads(files[-1].read_text()))

    def program(self, text: str, name: str = "program") -> str:
        path = self.folder / "work" / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
        return str(path)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    for name in ("bin", "work", "cluster/etc"):
        (tmp_path / name).mkdir(parents=True)
    for name, text in (("ssh", SSH), ("date", DATE), ("df", DF), ("mpirun", MPIRUN)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    made = Site(tmp_path)
    for number in (1, 2, 3):
        made.node(f"n-{number}")
    return made


def found(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str, str]]:
    return [(e["code"], e["severity"], e["node"]) for e in json.loads(done.stdout)["findings"]]


def test_tools_are_clean() -> None:
    shellcheck = shutil.which("shellcheck") or str(PROJECT_ROOT / ".venv/bin/shellcheck")
    files = [*TOOLS.glob("*.sh"), *(TOOLS / name for name in ("run-mpi", "restart-mpi"))]
    done = subprocess.run([shellcheck, "-x", "-P", str(TOOLS), *map(str, files)], capture_output=True, text=True)
    assert done.stdout + done.stderr == ""


def test_check_nodes_reads_with_the_oldest_python_of_the_distributions() -> None:
    ast.parse((TOOLS / "check-nodes").read_text(), feature_version=(3, 6))


@pytest.mark.parametrize("tool", ["check-nodes", "run-mpi", "restart-mpi"])
def test_each_tool_explains_itself(site: Site, tool: str) -> None:
    done = site.run(tool, "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"usage: {tool}") and "xit codes" in done.stdout


def test_healthy_nodes(site: Site) -> None:
    done = site.run("check-nodes", "--json", "n-1", "n-2", "n-3")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["findings"] == [] and result["fit"] is True and set(result["nodes"]) == {"n-1", "n-2", "n-3"}
    assert result["nodes"]["n-1"]["mpi"] == "mpirun (test) 1.0" and result["nodes"]["n-1"]["back"] == "yes"
    assert site.run("check-nodes", "n-1").stdout == "1 node checked, 0 not fit\n"


@pytest.mark.parametrize(
    ("change", "code", "severity"),
    [
        ("down", "HPC940", "error"),
        ("no-way-back", "HPC941", "error"),
        ("load", "HPC942", "warning"),
        ("memory", "HPC943", "warning"),
        ("no-shm", "HPC944", "error"),
        ("full-shm", "HPC944", "warning"),
        ("segment", "HPC945", "warning"),
        ("mount", "HPC946", "error"),
        ("mpi", "HPC947", "error"),
        ("cpu", "HPC948", "warning"),
        ("clock", "HPC949", "warning"),
        ("clock-far", "HPC949", "error"),
    ],
)
def test_each_fault_is_found_on_its_node(site: Site, change: str, code: str, severity: str) -> None:
    root = site.folder / "nodes/n-2"
    match change:
        case "down" | "no-way-back":
            site.mark(change, "n-2")
        case "load":
            (root / "proc/loadavg").write_text("97.00 50.00 30.00 1/100 1000\n")
        case "memory":
            (root / "proc/meminfo").write_text("MemTotal: 4194304 kB\nMemAvailable: 400000 kB\n")
        case "no-shm":
            (root / "dev/shm").rmdir()
        case "full-shm":
            (root / "shm-free").write_text("1000")
        case "segment":
            (root / "dev/shm/vader_segment.n-2.1234").write_text("left")
            (root / "dev/shm/somebodys-cache").write_text("not MPI's")
        case "mount":
            (site.folder / "cluster/etc/mounts").write_text("/ fs:/ opts\n")
            (root / "proc/mounts").write_text("proc /proc proc rw 0 0\n")
        case "mpi":
            (root / "mpi-version").write_text("mpirun (test) 2.0\n")
        case "cpu":
            (root / "proc/cpuinfo").write_text("processor : 0\nmodel name\t: Another CPU\n")
        case "clock":
            site.mark("clock", "n-2", "3")
        case "clock-far":
            site.mark("clock", "n-2", "-60")
    done = site.run("check-nodes", "--json", "n-1", "n-2", "n-3")
    assert found(done) == [(code, severity, "n-2")], done.stdout + done.stderr
    assert done.returncode == (1 if severity == "error" else 0)
    assert site.run("check-nodes", "--strict", "n-1", "n-2", "n-3").returncode == 1
    text = site.run("check-nodes", "n-1", "n-2", "n-3").stdout
    assert f"{severity} {code} n-2: " in text and "    fix: " in text


def rdma(site: Site, node: str, state: str = "4: ACTIVE", counted: int = 1000) -> Path:
    port = site.folder / "nodes" / node / "sys/class/infiniband/erdma_0/ports/1"
    (port / "hw_counters").mkdir(parents=True, exist_ok=True)
    (port / "state").write_text(f"{state}\n")
    (port / "hw_counters/hw_rx_bytes_cnt").write_text(f"{counted}\n")
    return port / "hw_counters/hw_rx_bytes_cnt"


def test_erdma_is_demanded_where_the_pool_has_it(site: Site) -> None:
    assert found(site.run("check-nodes", "--json", "n-1", "n-2")) == []
    (site.folder / "cluster/etc/cluster.env").write_text("HPC_POOL_n='erdma'\n")
    rdma(site, "n-1")
    rdma(site, "n-3", "1: DOWN")
    assert found(site.run("check-nodes", "--json", "n-1", "n-2", "n-3")) == [
        ("HPC950", "error", "n-2"),
        ("HPC950", "error", "n-3"),
    ]
    assert found(site.run("check-nodes", "--json", "--erdma", "no", "n-1", "n-2", "n-3")) == []


def test_nothing_to_check(site: Site) -> None:
    for words in ([], ["--hostfile", "/no/file"], ["-o", "x"], ["n 1"], ["--", "-oProxyCommand=x"]):
        done = site.run("check-nodes", *words)
        assert done.returncode == 2 and done.stderr and "Traceback" not in done.stderr


def test_run_takes_ranks_from_the_hostfile_and_writes_log_and_summary(site: Site) -> None:
    program = site.program('echo "rank $RANK of a $1"')
    done = site.run("run-mpi", "--hostfile", site.hostfile(), "--", program, "two words")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {n} of a two words" for n in range(3)]
    assert (site.folder / "machines").read_text() == "n-1 slots=2\nn-2 slots=1\n"
    assert "-np 3 --bind-to core" in (site.folder / "mpirun").read_text()
    summary = site.summary()
    assert summary["nodes"] == ["n-1", "n-2"] and summary["ranks"] == 3 and summary["exit_code"] == 0
    assert summary["program"] == [program, "two words"] and summary["erdma_used"] is None
    log = (site.folder / "work" / summary["log"]).read_text()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} ", line) for line in log.splitlines())
    assert "rank 2 of a two words" in log and "check: 2 nodes checked, 0 not fit" in log


def test_run_hands_on_the_exit_code_and_prints_json(site: Site) -> None:
    program = site.program('echo "to stderr \\"quoted\\"" >&2; exit 7')
    done = site.run("run-mpi", "--json", "--hostfile", site.hostfile("n-1\n"), program)
    assert done.returncode == 7
    text = done.stdout[done.stdout.index("{") :]
    assert json.loads(text)["exit_code"] == 7


@pytest.mark.parametrize("text", ["n-1:2\nn-2:1\n", "n-1\nn-1\nn-2\n", "# comment\nn-1 slots=2 max-slots=4\n\nn-2\n"])
def test_kinds_of_hostfiles(site: Site, text: str) -> None:
    assert site.run("run-mpi", "--hostfile", site.hostfile(text), "true").returncode == 0
    assert (site.folder / "machines").read_text() == "n-1 slots=2\nn-2 slots=1\n"
    assert site.run("run-mpi", "--hostfile", site.hostfile(text), "true", HPC_MPI="mpich").returncode == 0
    assert (site.folder / "machines").read_text() == "n-1:2\nn-2:1\n"


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (["-n", "4", "true"], 1, "HPC961"),
        (["-n", "none", "true"], 2, "HPC960"),
        (["--bind", "thread", "true"], 2, "HPC960"),
        (["--launcher", "srun", "true"], 2, "HPC960"),
        (["./not-there"], 2, "HPC960"),
        (["--wrong", "true"], 2, "HPC960"),
        ([], 2, "HPC960"),
    ],
)
def test_run_refuses(site: Site, words: list[str], exit_code: int, code: str) -> None:
    done = site.run("run-mpi", "--hostfile", site.hostfile(), *words)
    assert (done.returncode, done.stderr[:6]) == (exit_code, code)
    assert not (site.folder / "mpirun").exists()


def test_run_with_more_ranks_than_slots_when_asked(site: Site) -> None:
    assert site.run("run-mpi", "--oversubscribe", "-n", "4", "--hostfile", site.hostfile(), "true").returncode == 0


def test_run_refuses_nodes_that_are_not_fit(site: Site) -> None:
    site.mark("down", "n-2")
    done = site.run("run-mpi", "--hostfile", site.hostfile(), "true")
    assert done.returncode == 1 and "HPC940 n-2" in done.stderr and "HPC962: nodes are not fit" in done.stderr
    assert not (site.folder / "mpirun").exists()
    assert site.run("run-mpi", "--no-check", "--no-clean", "--hostfile", site.hostfile(), "true").returncode == 0


def test_run_says_when_no_data_went_over_erdma(site: Site) -> None:
    (site.folder / "cluster/etc/cluster.env").write_text("HPC_POOL_n='erdma'\n")
    counters = [rdma(site, node) for node in ("n-1", "n-2")]
    done = site.run("run-mpi", "--hostfile", site.hostfile(), "true")
    assert done.returncode == 0 and "HPC963: the program ran on 2 eRDMA nodes" in done.stderr
    assert site.summary()["erdma_used"] is False
    program = site.program(f"[[ $RANK != 0 ]] || for file in {counters[0]} {counters[1]}; do echo 9000000 >$file; done")
    done = site.run("run-mpi", "--hostfile", site.hostfile(), program)
    assert "HPC963" not in done.stderr
    assert site.summary()["erdma_used"] is True and site.summary()["erdma_bytes"] == 17998000


def children(site: Site, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "300"], env=site.environment | environment, start_new_session=True)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    made: list[subprocess.Popen[bytes]] = []
    yield made
    for process in made:
        process.kill()
        process.wait()


def gone(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_leftovers_of_dead_runs_go_and_nothing_else(site: Site, processes: list[subprocess.Popen[bytes]]) -> None:
    origin = subprocess.check_output(["hostname", "-s"], text=True).strip()
    (site.folder / "bin/squeue").write_text("#!/bin/sh\necho 11\necho 12\n")
    (site.folder / "bin/squeue").chmod(0o755)
    with Path(f"/proc/{os.getpid()}/stat").open() as file:
        start = file.read().rpartition(")")[2].split()[19]
    living = {
        "a job that runs": {"SLURM_JOB_ID": "12"},
        "a run that lives": {"HPC_RUN_ID": f"{origin}:{os.getpid()}:{start}"},
        "a run of another host": {"HPC_RUN_ID": "elsewhere:1:1"},
        "no job": {},
    }
    dead = {
        "a job that ended": {"SLURM_JOB_ID": "10"},
        "a run that ended": {"HPC_RUN_ID": f"{origin}:{os.getpid()}:1"},
        "a run that ended in a job that runs": {"HPC_RUN_ID": f"{origin}:999999:1", "SLURM_JOB_ID": "12"},
    }
    names = {name: children(site, **variables) for name, variables in (living | dead).items()}
    processes.extend(names.values())
    if os.geteuid() == 0:
        other = subprocess.Popen(
            ["setpriv", "--reuid=65534", "--clear-groups", "sleep", "300"], env={**os.environ, "SLURM_JOB_ID": "10"}
        )
        processes.append(other)
        names["another user's"] = other
    segment = site.folder / "nodes/n-1/dev/shm/sm_segment.n-1.0"
    segment.write_text("left")
    kept = site.folder / "nodes/n-1/dev/shm/cache-of-mine"
    kept.write_text("kept")
    young = site.run("run-mpi", "--hostfile", site.hostfile("n-1\n"), "true")
    assert young.returncode == 0 and all(process.poll() is None for process in names.values())
    segment.write_text("left again")
    done = site.run("run-mpi", "--hostfile", site.hostfile("n-1\n"), "true", HPC_CLEAN_AGE="0")
    assert done.returncode == 0, done.stderr
    for name, process in names.items():
        if name in dead:
            assert gone(process), name
        else:
            assert process.poll() is None, name
    assert not segment.exists() and kept.exists()
    log = (site.folder / "work" / site.summary()["log"]).read_text()
    assert log.count("cleaned n-1: process") == len(dead) and f"cleaned n-1: segment {segment}" in log


def test_where_slurm_cannot_be_asked_no_job_is_taken_for_dead(
    site: Site, processes: list[subprocess.Popen[bytes]]
) -> None:
    (site.folder / "bin/squeue").write_text("#!/bin/sh\nexit 1\n")
    (site.folder / "bin/squeue").chmod(0o755)
    process = children(site, SLURM_JOB_ID="10")
    processes.append(process)
    assert site.run("run-mpi", "--hostfile", site.hostfile("n-1\n"), "true", HPC_CLEAN_AGE="0").returncode == 0
    assert process.poll() is None


def test_a_signal_ends_the_program_and_the_summary_says_so(site: Site) -> None:
    program = site.program("echo ready; exec sleep 300")
    running = subprocess.Popen(
        [str(TOOLS / "run-mpi"), "--hostfile", site.hostfile("n-1\n"), program],
        cwd=site.folder / "work", env=site.environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout is not None and running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGTERM)
    assert running.wait(30) != 0
    assert site.summary()["signal"] == "TERM"


#: Counts to ten with a checkpoint a step, and fails the first time that it comes to step 4 and to step 8.
STEPS = """
[[ ${RANK:-0} == 0 ]] || exit 0
step=0
[[ ${1:-} != --restart ]] || step=$(<"$2")
while ((step < 10)); do
    step=$((step + 1))
    for bad in 4 8; do
        [[ -e done-$bad ]] || ((step != bad)) || { : >"done-$bad"; exit 9; }
    done
    echo "$step" >state.tmp && mv state.tmp "state-$step.chk"
    touch -d "@$((1000000000 + step))" "state-$step.chk"
done
echo "result $step"
"""
RESTART = ("--checkpoint", "state-*.chk", "--resume", "--restart {}", "--pause", "0")


def restart(site: Site, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    hostfile = site.hostfile("n-1\n")
    return site.run("restart-mpi", *RESTART, "--hostfile", hostfile, *words, **environment)


def test_restart_goes_on_from_the_newest_checkpoint(site: Site) -> None:
    done = restart(site, "--json", "--", site.program(STEPS))
    assert done.returncode == 0, done.stderr
    assert "start 2 from state-3.chk" in done.stderr and "start 3 from state-7.chk" in done.stderr
    assert "result 10" in done.stdout
    result = json.loads(done.stdout.splitlines()[-1])
    assert result == {"starts": 3, "requeues": 0, "exit_code": 0, "checkpoint": "state-10.chk", "end": "succeeded"}


def advancing(site: Site) -> str:
    """A program that makes a checkpoint at every start, and always fails."""
    return site.program('n=$(ls state-*.chk 2>/dev/null | wc -l); echo x >"state-$n.chk"; exit 9')


def test_restart_gives_up_when_the_retries_are_used(site: Site) -> None:
    done = restart(site, "--retries", "2", "--", advancing(site))
    assert done.returncode == 1 and done.stderr.count("restart-mpi: start") == 3
    assert "HPC964: the program still fails (exit code 9) after 2 further start(s)" in done.stderr
    # Starts of a job that Slurm requeued count.
    done = restart(site, "--retries", "2", "--", advancing(site), SLURM_RESTART_COUNT="2")
    assert done.returncode == 1 and done.stderr.count("restart-mpi: start") == 1


def test_restart_gives_up_without_progress(site: Site) -> None:
    done = restart(site, "--retries", "9", "--", site.program("exit 3"))
    assert done.returncode == 1 and "HPC965" in done.stderr and done.stderr.count("restart-mpi: start") == 2


def test_unfinished_checkpoints_are_none(site: Site) -> None:
    work = site.folder / "work"
    (work / "state-1.chk").write_text("good")
    os.utime(work / "state-1.chk", (1, 1))
    (work / "state-2.chk").touch()
    (work / "state-3.chk.tmp").write_text("half")
    done = site.run(
        "restart-mpi", "--checkpoint", "state-*", "--resume", "{}", "--hostfile", site.hostfile("n-1\n"), "--", "true"
    )
    assert done.returncode == 0 and "from state-1.chk" in done.stderr


def test_restart_does_not_try_what_is_refused(site: Site) -> None:
    site.mark("down", "n-1")
    done = restart(site, "--", "true")
    assert done.returncode == 1 and done.stderr.count("restart-mpi: start") == 1 and "HPC962" in done.stderr


def test_restart_ends_at_a_signal_from_outside(site: Site) -> None:
    program = site.program("echo x >state-1.chk; echo ready; exec sleep 300")
    running = subprocess.Popen(
        [str(TOOLS / "restart-mpi"), *RESTART, "--hostfile", site.hostfile("n-1\n"), "--", program],
        cwd=site.folder / "work", env=site.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout is not None and running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=30)
    assert running.returncode != 0 and err.count("restart-mpi: start") == 1


#: Stands in for Slurm's commands inside of a job of two nodes.
SRUN = """#!/bin/bash
echo "$*" >>"$SITE/srun"
ranks=1
while [[ $1 == -* ]]; do
    case $1 in --ntasks=*) ranks=${1#*=} ;; --nodelist=*) node=${1#*=} ;; --label) label=1 ;; esac
    shift
done
[[ -z ${node:-} ]] || export HPC_ROOT=$SITE/nodes/$node
if [[ -n ${label:-} ]]; then
    script=$(cat)
    for ((rank = 0; rank < ranks; rank++)); do
        HPC_ROOT=$SITE/nodes/n-$((rank + 1)) "$@" <<<"$script" | sed "s/^/$rank: /"
    done
    exit
fi
for ((rank = 0; rank < ranks; rank++)); do RANK=$rank "$@"; done
"""


def test_run_inside_of_a_slurm_job(site: Site) -> None:
    for name, text in (("srun", SRUN), ("scontrol", '#!/bin/sh\n[ "$2" = hostnames ] && printf "n-1\\nn-2\\n"\n')):
        (site.folder / "bin" / name).write_text(text)
        (site.folder / "bin" / name).chmod(0o755)
    job = {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "n-[1-2]",
        "SLURM_NTASKS": "3",
        "SLURM_TASKS_PER_NODE": "2,1",
    }
    (site.folder / "nodes/n-2/dev/shm/sm_segment.n-2.0").write_text("left")
    done = site.run("run-mpi", "--", site.program('echo "rank $RANK"'), **job)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["rank 0", "rank 1", "rank 2"]
    assert site.summary()["nodes"] == ["n-1", "n-2"] and site.summary()["job"] == "7"
    assert "--cpu-bind=cores --ntasks=3 --kill-on-bad-exit=1" in (site.folder / "srun").read_text()
    log = (site.folder / "work" / site.summary()["log"]).read_text()
    assert "cleaned n-2: segment " in log and not (site.folder / "nodes/n-2/dev/shm/sm_segment.n-2.0").exists()
    refused = site.run("run-mpi", "-n", "4", "true", **job)
    assert refused.returncode == 1 and "HPC961: 4 ranks in a job of 3 tasks" in refused.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("module", ["openmpi", "mpich", "intelmpi"])
def test_a_real_program_on_each_stack(site: Site, stacks: Path, module: str) -> None:  # noqa: F811
    shutil.rmtree(site.folder / "nodes")
    (site.folder / "bin/mpirun").unlink()
    origin = subprocess.check_output(["hostname", "-s"], text=True).strip()
    source = PROJECT_ROOT / "docs/mpi/cmake/heat.c"
    script = f"""
. {MODULES_INIT}; module use {stacks}/modulefiles; module load {module} || exit 9
export OMPI_MCA_btl_tcp_if_include=lo FI_TCP_IFACE=lo; unset PRTE_MCA_oob_tcp_if_include
mpicc {source} -o heat -lm && {TOOLS}/run-mpi --bind none --hostfile {site.hostfile(f"{origin} slots=2")} ./heat 10 2000
"""
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=site.folder / "work",
        env=site.environment
        | {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ranks 2 cells 20 steps 2000 largest difference" in done.stdout
    assert site.summary()["mpi"] == module and site.summary()["exit_code"] == 0
