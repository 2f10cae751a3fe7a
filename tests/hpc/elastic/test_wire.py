"""What Slurm's programs hand over, whatever it is and whether or not somebody listens."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpc.elastic.daemon import Daemon, jobs_of
from hpc.elastic.hostlists import NAME_LIMIT, expanded, folded
from hpc.elastic.server import Server
from hpc.elastic.wire import send
from tests.hpc.elastic.settings_for_tests import settings
from tests.hpc.elastic.simulation import Cluster

CONNECTIONS = 50


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "socket")


@pytest.fixture
def daemon(tmp_path: Path, path: str) -> Iterator[Daemon]:
    cluster = Cluster(settings(), tmp_path)
    with Server(cluster.daemon.handle, path):
        yield cluster.daemon
    cluster.close()


def raw(path: str, data: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(path)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    found: dict[str, Any] = json.loads(answer)
    return found


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"hello",
        b"\xff\xfe\x00\x01" * 1000,
        b"[]",
        b"7",
        b"null",
        b"{}",
        b"[" * 200_000,
        b'{"operation": "resume"',
        b'{"operation": ["resume"], "nodes": "mpi-1"}',
        b'{"operation": "format"}',
        b'{"operation": "recover", "pool": "nobody"}',
        b'{"operation": "resume", "nodes": "mpi-[1-"}',
        b'{"operation": "resume", "nodes": "mpi-[1-99999999]"}',
        b'{"operation": "resume", "nodes": "a-[1-9999]-[1-9999]-[1-9999]"}',
        b'{"operation": "resume", "nodes": "mpi-[1-99999999999999999999999999]"}',
        b'{"operation": "resume", "nodes": "@*"}',
        b'{"operation": "resume", "nodes": "mpi-1; rm -rf /"}',
        b'{"operation": "resume", "nodes": "mpi-[1-100/3]"}',
        json.dumps({"operation": "resume", "nodes": "a," * 600_000}).encode(),
    ],
)
def test_bad_messages_are_refused_and_hurt_nobody(daemon: Daemon, path: str, data: bytes) -> None:
    answer = raw(path, data)
    assert answer["ok"] is False and len(answer["error"]) <= 500
    assert send({"operation": "suspend", "nodes": "mpi-1"}, path) == {"ok": True}


def test_a_huge_message_is_taken(daemon: Daemon, path: str) -> None:
    jobs = [{"job_id": n, "nodes_resume": f"mpi-[{n}-{n + 1}]", "features": "x" * 1000} for n in range(1, 5000, 2)]
    assert send({"operation": "resume", "nodes": "mpi-[1-5001]", "jobs": jobs}, path) == {"ok": True}


def test_many_at_once(daemon: Daemon, path: str) -> None:
    answers: list[dict[str, Any]] = []

    def one(number: int) -> None:
        answers.append(send({"operation": "resume", "nodes": f"mpi-{number}", "jobs": []}, path))

    threads = [threading.Thread(target=one, args=(n + 1,)) for n in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [{"ok": True}] * CONNECTIONS


def test_somebody_who_says_nothing_holds_nobody_up(daemon: Daemon, path: str) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(path)
        silent.sendall(b'{"operation"')
        assert send({"operation": "suspend", "nodes": "mpi-1"}, path) == {"ok": True}


def test_only_its_user_may_speak_to_it(daemon: Daemon, path: str) -> None:
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_a_fault_of_the_daemon_is_an_answer(path: str) -> None:
    def broken(message: dict[str, object]) -> None:
        raise RuntimeError("disk full: /secret")

    with Server(broken, path):
        assert raw(path, b"{}") == {"ok": False, "error": "RuntimeError"}


def test_a_socket_left_by_a_crash_is_no_hindrance(path: str, daemon: Daemon) -> None:
    Path(path).unlink()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    with Server(lambda message: None, path):
        assert send({"operation": "x"}, path) == {"ok": True}


@pytest.mark.parametrize(
    "hostlist", ["mpi-[1-99999999]", "a[1-400]b[1-400]", "x" * 2_000_000, "a,b;c", "@all", "a[1", "a]", "a-[3-x]", "!a"]
)
def test_hostlists_that_are_none(hostlist: str) -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match=r"hostlist|more than"):
        expanded(hostlist)
    assert time.process_time() - started < 5, "refused before it is expanded"


def test_hostlists_as_slurm_writes_them() -> None:
    assert expanded("") == ()
    assert expanded("mpi-[1-3,7],c-1-9") == ("c-1-9", "mpi-1", "mpi-2", "mpi-3", "mpi-7")
    assert len(expanded(f"mpi-[1-{NAME_LIMIT}]")) == NAME_LIMIT
    assert folded(expanded("mpi-[1-40],gpu-3")) == "gpu-3,mpi-[1-40]"


def test_jobs_of_the_resume_file() -> None:
    new = {"job_id": 7, "nodes_alloc": "mpi-[1-4]", "nodes_resume": "mpi-[3-4]", "features": None}
    assert jobs_of([new]) == {"mpi-3": 7, "mpi-4": 7}
    assert jobs_of([{"job_id": 8, "nodes": "mpi-[1-2]"}]) == {"mpi-1": 8, "mpi-2": 8}, "as 22.05 writes it"
    assert jobs_of([{"job_id": 9, "nodes": "mpi-1"}]) == {}
    for other in (None, 7, "x", {}, [None], [[]], [{"job_id": "7", "nodes": "mpi-[1-2]"}], [{"nodes": "a-[1-"}]):
        assert jobs_of(other) == {}


def program(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-m", f"hpc.elastic.{name}", *arguments],
        env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True, timeout=30,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["resume", "suspend", "recover"])
def test_programs_say_that_nobody_listens(name: str, path: str) -> None:
    done = program(name, "mpi-1", HPC_ELASTIC_SOCKET=path)
    assert done.returncode == 1
    assert done.stderr.startswith("HPC931: the elastic daemon does not answer") and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["resume", "suspend", "recover"])
def test_programs_say_how_they_are_used(name: str) -> None:
    done = program(name)
    assert done.returncode == 2 and done.stderr.startswith("usage: ")


def test_resume_hands_over_the_file(tmp_path: Path, path: str) -> None:
    taken: list[dict[str, object]] = []
    file = tmp_path / "resume.json"
    file.write_text(json.dumps({"jobs": [{"job_id": 1, "nodes": "mpi-[1-2]"}], "all_nodes": "mpi-[1-2]"}))
    with Server(taken.append, path):
        assert program("resume", "mpi-[1-2]", HPC_ELASTIC_SOCKET=path, SLURM_RESUME_FILE=str(file)).returncode == 0
        file.write_bytes(b"\xff{")
        assert program("resume", "mpi-3", HPC_ELASTIC_SOCKET=path, SLURM_RESUME_FILE=str(file)).returncode == 0
        assert program("suspend", "mpi-3", HPC_ELASTIC_SOCKET=path).returncode == 0
    assert taken == [
        {"operation": "resume", "nodes": "mpi-[1-2]", "jobs": [{"job_id": 1, "nodes": "mpi-[1-2]"}]},
        {"operation": "resume", "nodes": "mpi-3", "jobs": []},
        {"operation": "suspend", "nodes": "mpi-3"},
    ]


def test_a_refused_message_is_told(path: str, daemon: Daemon) -> None:
    done = program("recover", "nobody", HPC_ELASTIC_SOCKET=path)
    assert done.returncode == 1 and done.stderr == "HPC932: the elastic daemon refused: there is no pool nobody\n"


@pytest.mark.parametrize("name", ["resume", "suspend", "recover"])
def test_programs_import_little(name: str) -> None:
    code = f"import sys, hpc.elastic.{name}; print('\\n'.join(sys.modules))"
    modules = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=30
    ).stdout.split()
    heavy = (
        "alibabacloud",
        "Tea",
        "darabonba",
        "ClusterShell",
        "tenacity",
        "pydantic",
        "sqlite3",
        "asyncio",
        "logging",
    )
    assert [module for module in modules if module.startswith(heavy)] == []
    own = [module for module in modules if module.startswith("hpc")]
    assert own == ["hpc", "hpc.elastic", "hpc.elastic.wire", f"hpc.elastic.{name}"]
