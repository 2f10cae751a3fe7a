"""A tiny Pulumi project that needs no cloud: components with inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpc.engine.cli import find_cli
from hpc.engine.project import Deployment, Workspace

PROGRAM = """
import time
import pulumi

class Thing(pulumi.ComponentResource):
    def __init__(self, name, size):
        super().__init__("test:index:Thing", name, {"size": size})
        self.register_outputs({"size": size})

config = pulumi.Config("hpc")
for number in range(config.get_int("things") or 2):
    Thing(f"thing-{number}", number)
if config.get_bool("fail"):
    raise pulumi.RunError("the program refuses")
if seconds := config.get_float("wait"):
    time.sleep(seconds)
pulumi.export("things", config.get_int("things") or 2)
pulumi.export("hidden", pulumi.Output.secret("s3cret"))
"""


@pytest.fixture(scope="session")
def cli() -> Path:
    found = find_cli()
    if found is None:
        pytest.skip("no Pulumi engine (make it with: python -m hpc.engine path)")
    return found


@pytest.fixture
def deployment(cli: Path, tmp_path: Path) -> Callable[..., Deployment]:
    """Makes a deployment of the tiny project; call again with other config for the next run of the same stack."""

    def make(**config: object) -> Deployment:
        program = tmp_path / "program.py"
        program.write_text(PROGRAM)
        stack_file = tmp_path / "Pulumi.t.yaml"
        lines = [f"  hpc:{key}: {value}" for key, value in config.items()]
        stack_file.write_text("config:\n" + "\n".join(lines or ["  hpc:x: 1"]) + "\n")
        return Deployment(
            Workspace(
                stack="t",
                stack_file=stack_file,
                cli=cli,
                program=program,
                folder=tmp_path / "work",
                backend=f"file://{tmp_path}/state",
                passphrase="p",
            )
        )

    return make
