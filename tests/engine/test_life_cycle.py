from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest

from hpc.deploy.session import Session
from hpc.engine.results import RunResult
from tests.engine.conftest import Stack

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def cloud_kinds(result: RunResult) -> set[tuple[str, str]]:
    """(type, operation) of the real resources that change."""
    return {(c.type, c.operation) for c in result.changed if not c.type.startswith(("hpc:", "pulumi:"))}


def up(session: Session) -> RunResult:
    result = session.deployment.up()
    assert result.succeeded, result.first_error
    return result


def test_whole_life(life: Stack, plugins: str) -> None:
    with ExitStack() as stack:
        session = life.session(stack)
        cloud = session.cloud
        assert cloud is not None
        made = up(session)
        assert made.outputs["ssh_private_key"] == "[secret]"
        assert cloud.counts()["instance"] == 2

        assert session.deployment.preview().changed == (), "a second up has nothing to do"
        assert session.deployment.refresh(preview_only=True).changed == (), "a refresh finds no drift"

    # A larger pool is a change in place that leaves every instance alone.
    life.cluster["pools"][0]["max"] = 6
    with ExitStack() as stack:
        session = life.session(stack)
        planned = session.deployment.preview()
        assert not {operation for _, operation in cloud_kinds(planned)} - {"update"}, cloud_kinds(planned)
        assert not any(kind == "alicloud:ecs/instance:Instance" for kind, _ in cloud_kinds(planned))
        up(session)

    # User data of a pool changes: its launch template gets a new version, nothing else happens.
    life.cluster["storage"][0]["mount"] = "/shared"
    with ExitStack() as stack:
        session = life.session(stack)
        planned = session.deployment.preview()
        assert ("alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate", "update") in cloud_kinds(planned)
        assert not any(kind == "alicloud:ecs/instance:Instance" for kind, _ in cloud_kinds(planned))

    life.cluster["storage"][0]["mount"] = "/home"
    with ExitStack() as stack:
        session = life.session(stack)
        cloud = session.cloud
        assert cloud is not None
        # An instance vanishes behind the engine's back: refresh finds it, up makes it again.
        instances = cloud.snapshot()["resources"]["instance"]
        login = next(i for i in instances if _name(i) == "login-0")
        cloud.vanish(_identity(login))
        drift = session.deployment.refresh(preview_only=True)
        assert ("alicloud:ecs/instance:Instance", "delete") in cloud_kinds(drift)
        session.deployment.refresh()
        up(session)
        assert cloud.counts()["instance"] == 2

        destroyed = session.deployment.destroy()
        assert destroyed.succeeded, destroyed.first_error
        assert cloud.counts() == {}, "destroy leaves an empty cloud"


def _name(document: dict[str, Any]) -> str:
    return str(document.get("HostName") or document.get("host_name") or document.get("hostname"))


def _identity(document: dict[str, Any]) -> str:
    return str(document.get("InstanceId") or document.get("instance_id") or document.get("id"))


def test_a_failed_create_is_repaired_and_resumed(life: Stack, plugins: str) -> None:
    with ExitStack() as stack:
        session = life.session(stack)
        cloud = session.cloud
        assert cloud is not None
        cloud.set_quota(vcpus=2)
        failed = session.deployment.up()
        assert not failed.succeeded
        assert any("QuotaExceed" in d.message for d in failed.diagnostics), [d.message for d in failed.diagnostics]
        assert cloud.counts()["instance"] == 1
        vpcs = cloud.snapshot()["resources"]["vpc"]
        cloud.set_quota(vcpus=64)
        up(session)
        assert cloud.counts()["instance"] == 2
        assert cloud.snapshot()["resources"]["vpc"] == vpcs, "what was made stays"
        assert session.deployment.destroy().succeeded
        assert cloud.counts() == {}


def test_the_server_is_killed_during_up(life: Stack, plugins: str) -> None:
    from hpc.deploy.local import ensure_cloud

    with ExitStack() as stack:
        session = life.session(stack)
        cloud = session.cloud
        assert cloud is not None

        def kill_and_start_again() -> None:
            while cloud.counts().get("security_group", 0) == 0:
                time.sleep(0.02)
            os.kill(cloud.record.pid, signal.SIGKILL)
            while cloud.record.alive():
                time.sleep(0.02)
            ensure_cloud(lambda line: None, hosts=False)  # on the same state, so at the same port with the same keys

        killer = threading.Thread(target=kill_and_start_again, daemon=True)
        killer.start()
        first = session.deployment.up()
        killer.join(timeout=60)
        if not first.succeeded:  # the engine had given up before the server was back
            up(session)
        assert cloud.counts()["instance"] == 2
        assert cloud.counts()["vpc"] == 1, "nothing was made twice"
        assert session.deployment.destroy().succeeded
        assert cloud.counts() == {}
