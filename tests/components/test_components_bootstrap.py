"""Bootstrap: order, connections, what starts a new run, and that secrets travel on stdin only."""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from components.bootstrap import Bootstrap, BootstrapArgs, script_command
from components.recording import Recording, Registered, SecretValue, record, unwrap
from hpc.paths import PROJECT_ROOT
from hpc.slurm.facts import Facts, MountFact, NodeFact, PoolFact
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import login_names, management_names

MUNGE, PASSWORD, KEY = base64.b64encode(b"munge" * 20).decode(), "p4ss-of-the-database", "PRIVATE KEY"


def load(stack: str) -> ClusterSpec:
    return ClusterSpec.model_validate(
        yaml.safe_load((PROJECT_ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]["hpc:cluster"]
    )


def facts_of(spec: ClusterSpec) -> Facts:
    return Facts(
        region=spec.region,
        vpc_cidr=str(spec.network.cidr),
        management=tuple(NodeFact(name, f"10.0.0.{i}") for i, name in enumerate(management_names(spec), 1)),
        login=tuple(NodeFact(name, f"10.0.1.{i}") for i, name in enumerate(login_names(spec), 1)),
        mounts=tuple(MountFact(entry.mount, "fs.nas.aliyuncs.com") for entry in spec.storage),
        vswitches=dict.fromkeys(spec.zones, "vsw-1"),
        security_group_id="sg-1",
        ram_role="role",
        pools={pool.name: PoolFact("lt-1", "m-1") for pool in spec.pools},
    )


def registered(spec: ClusterSpec, folder: Path, **changes: Any) -> Recording:
    def program() -> None:
        facts = facts_of(spec)
        Bootstrap(
            "c-bootstrap",
            BootstrapArgs(
                spec=spec,
                facts=pulumi.Output.from_input(facts),  # type: ignore[arg-type]
                management=tuple(node.address for node in facts.management),
                login=tuple(f"198.51.100.{i}" for i, _ in enumerate(facts.login, 1)),
                private_key=pulumi.Output.secret(KEY),
                munge_key=MUNGE,
                database_password=PASSWORD,
                bundle_folder=folder,
                **changes,
            ),
        )

    return record(program, invokes=lambda token, args: {}, outputs=lambda kind, name, inputs: {})


def commands(recording: Recording) -> dict[str, Registered]:
    return {entry.name: entry for entry in recording.resources if entry.type == "command:remote:Command"}


def items(stdin: str) -> dict[str, bytes]:
    return {name: base64.b64decode(data) for name, data in (line.split() for line in stdin.splitlines())}


def test_management_comes_first_then_backup_then_login(tmp_path: Path) -> None:
    made = commands(registered(load("prod"), tmp_path))
    order = [f"c-bootstrap-{host}" for host in ("management-0", "management-1", "login-0", "login-1")]
    assert list(made) == order
    for earlier, later in itertools.pairwise(order):
        assert made[earlier].urn in made[later].depends_on
    assert "management.sh" in made[order[0]].inputs["create"] and "--backup" not in made[order[0]].inputs["create"]
    assert "--backup" in made[order[1]].inputs["create"]
    assert "login.sh" in made[order[2]].inputs["create"]


def test_management_is_reached_through_the_login_node(tmp_path: Path) -> None:
    for entry in registered(load("prod"), tmp_path).resources:
        if not entry.custom:
            continue
        connection = unwrap(entry.inputs["connection"])
        assert connection["dialErrorLimit"] >= 30 and connection["privateKey"] == KEY
        if "management" in entry.name:
            assert connection["host"].startswith("10.0.0.") and connection["proxy"]["host"] == "198.51.100.1"
        else:
            assert connection["host"].startswith("198.51.100.") and "proxy" not in connection


def test_secrets_are_marked_and_only_where_they_are_needed(tmp_path: Path) -> None:
    made = commands(registered(load("prod"), tmp_path))
    first = made["c-bootstrap-management-0"].inputs["stdin"]
    assert isinstance(first, SecretValue)
    content = items(first.value)
    assert content["munge.key"] == b"munge" * 20 and content["database.password"] == PASSWORD.encode()
    assert json.loads(content["pools.json"])["cluster"] == "prod"
    for name, entry in made.items():
        rest = json.dumps({key: unwrap(value) for key, value in entry.inputs.items() if key != "stdin"})
        assert PASSWORD not in rest and MUNGE not in rest
        if name != "c-bootstrap-management-0":
            assert set(items(unwrap(entry.inputs["stdin"]))) == {
                "facts.env", "facts.json", "hosts.static", "mounts", "share"
            }  # fmt: skip


def test_triggers_name_the_part_that_changed(tmp_path: Path) -> None:
    spec = load("dev")
    pool = spec.pools[0].model_copy(update={"max": 5})
    before, after = (
        commands(registered(made, tmp_path))["c-bootstrap-management-0"].inputs["triggers"]
        for made in (spec, spec.model_copy(update={"pools": (pool,)}))
    )
    assert [new.split()[0] for old, new in zip(before, after, strict=True) if old != new] == [
        "cluster.env",
        "slurm.conf",
    ]
    assert before == commands(registered(spec, tmp_path))["c-bootstrap-management-0"].inputs["triggers"]


def test_no_variable_is_passed_that_sshd_would_refuse(tmp_path: Path) -> None:
    for entry in commands(registered(load("local"), tmp_path)).values():
        assert entry.inputs["addPreviousOutputInEnv"] is False and "environment" not in entry.inputs


@pytest.mark.parametrize("user", ["root", "ecs-user"])
def test_the_command_runs_the_script_of_the_bundle(user: str, tmp_path: Path) -> None:
    (tmp_path / "bootstrap").mkdir()
    (tmp_path / "bootstrap/login.sh").write_text('cat; echo "arguments: $*"; exit 7\n')
    archive = tmp_path / "a b.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", tmp_path, "bootstrap"], check=True)
    command = script_command(user, str(archive), "login.sh", ["--x", "two words"])
    (tmp_path / "sudo").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (tmp_path / "sudo").chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", command], input="from stdin\n", text=True, capture_output=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (7, "from stdin\narguments: --x two words\n")
    assert not list(tmp_path.glob("tmp.*"))
