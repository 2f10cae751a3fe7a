from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc.engine.interrupt import engine_processes
from hpc.engine.project import Deployment

pytestmark = pytest.mark.engine

Make = Callable[..., Deployment]


def test_life_cycle(deployment: Make) -> None:
    stack = deployment(things=2)
    preview = stack.preview()
    assert preview.succeeded
    assert {c.name for c in preview.changed if c.type == "test:index:Thing"} == {"thing-0", "thing-1"}
    up = stack.up()
    assert up.succeeded
    assert up.outputs["things"] == 2
    assert up.outputs["hidden"] == "[secret]"
    assert stack.outputs()["hidden"] == "s3cret"
    again = stack.preview()
    assert again.changed == ()
    more = deployment(things=3).preview()
    assert [(c.name, c.operation) for c in more.changed] == [("thing-2", "create")]
    destroyed = stack.destroy()
    assert destroyed.succeeded
    assert not stack.export().get("resources")


def test_failing_program_is_a_result_with_the_reason(deployment: Make) -> None:
    result = deployment(fail="true").preview()
    assert not result.succeeded
    assert "the program refuses" in " ".join(d.message for d in result.diagnostics)


def test_the_stack_file_of_the_user_is_left_alone(deployment: Make, tmp_path: Path) -> None:
    stack = deployment(things=1)
    assert "encryption" not in (tmp_path / "Pulumi.t.yaml").read_text()
    assert "encryptionsalt" in (tmp_path / "work" / "Pulumi.t.yaml").read_text()
    stack.up()
    assert deployment(things=1).outputs()["hidden"] == "s3cret"  # the salt was kept


def test_state_that_another_run_is_writing_is_read_again(deployment: Make, tmp_path: Path) -> None:
    stack = deployment(things=1)
    assert stack.up().succeeded
    (state,) = (tmp_path / "state" / ".pulumi" / "stacks").rglob("t.json")
    whole = state.read_bytes()
    state.write_bytes(b"")
    writer = threading.Timer(1.5, state.write_bytes, [whole])
    writer.start()
    try:
        done = deployment(things=1).preview()
    finally:
        writer.join()
    assert done.succeeded and not done.changed


def test_interrupt_cancels_and_can_be_resumed(deployment: Make) -> None:
    stack = deployment(things=1, wait=60)

    def interrupt() -> None:
        while not engine_processes():
            time.sleep(0.05)
        time.sleep(3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        stack.up()
    assert engine_processes() == []
    assert deployment(things=1).up().succeeded


def test_a_killed_run_is_repaired(deployment: Make, tmp_path: Path) -> None:
    stack = deployment(things=1)
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]); from hpc.engine.project import *\n"
        "from pathlib import Path; t = Path(sys.argv[1])\n"
        "w = Workspace('t', t/'Pulumi.t.yaml', Path(sys.argv[3]), program=t/'program.py', folder=t/'work',\n"
        "              backend=f'file://{t}/state', passphrase='p')\n"
        "Deployment(w).up()"
    )
    (tmp_path / "Pulumi.t.yaml").write_text("config:\n  hpc:things: 1\n  hpc:wait: 60\n")
    root = str(Path(__file__).resolve().parents[3])
    run = subprocess.Popen([sys.executable, "-c", script, str(tmp_path), root, str(stack.workspace.cli)])
    locks = tmp_path / "state" / ".pulumi" / "locks"
    deadline = time.monotonic() + 60
    while not list(locks.rglob("*.json")) and time.monotonic() < deadline:
        assert run.poll() is None, "the run ended before it could be killed"
        time.sleep(0.1)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    engines = [int(pid) for pid in children.read_text().split()]
    for pid in [*engines, run.pid]:
        os.kill(pid, signal.SIGKILL)
    run.wait()
    stack = deployment(things=1)
    with pytest.raises(Exception, match="HPC712"):
        stack.up()
    stack.repair(lambda state: state)
    assert stack.up().succeeded
