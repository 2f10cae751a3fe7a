from __future__ import annotations

import importlib
import json
import os
import signal
import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest

from hpc.deploy.adopt import LOOKUPS, adopt
from hpc.deploy.rpc import Api
from hpc.deploy.session import Session
from hpc.engine.results import RunResult
from localcloud.api.client import LocalCloud
from localcloud.providers.client import Cloud
from tests.engine.conftest import Stack

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def cloud_kinds(result: RunResult) -> set[tuple[str, str]]:
    """(type, operation) of the real resources that change."""
    return {(c.type, c.operation) for c in result.changed if not c.type.startswith(("hpc:", "pulumi:"))}


def up(session: Session) -> RunResult:
    result = session.deployment.up()
    assert result.succeeded, result.first_error
    return result


def test_whole_life(life: Stack, plugins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        session = life.session(stack)
        cloud = session.cloud
        assert cloud is not None
        made = up(session)
        assert made.outputs["ssh_private_key"] == "[secret]"
        assert cloud.counts()["instance"] == 2

        assert session.deployment.preview().changed == (), "a second up has nothing to do"
        assert found_again(session) == [], "hpc repair would find all that a killed run has made"
        assert session.deployment.refresh(preview_only=True).changed == (), "a refresh finds no drift"

    # A larger pool is a change in place that leaves every instance alone.
    life.cluster["pools"][0]["max"] = 6
    with ExitStack() as stack:
        session = life.session(stack)
        planned = session.deployment.preview()
        assert not {operation for _, operation in cloud_kinds(planned)} - {"update"}, cloud_kinds(planned)
        assert not any(kind == "alicloud:ecs/instance:Instance" for kind, _ in cloud_kinds(planned))
        up(session)

    # A newer version of the project writes other user data. The launch template gets a new version, which is the
    # default from then on: what starts next starts from it, with its disk encrypted as before. No living node is
    # touched.
    for module, name in (("components.cluster", "compute_user_data"), ("components.node", "node_user_data")):
        before_change = getattr(importlib.import_module(module), name)
        monkeypatch.setattr(f"{module}.{name}", lambda *given, now=before_change: f"{now(*given)}# newer\n")
    with ExitStack() as stack:
        session = life.session(stack)
        cloud = session.cloud
        assert cloud is not None
        before = cloud.snapshot()["resources"]
        planned = session.deployment.preview()
        assert cloud_kinds(planned) == {("alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate", "update")}
        template = next(c for c in planned.changed if c.type.endswith(":EcsLaunchTemplate"))
        assert "userData" in {name.split(".")[0] for name in template.changed}, "the preview says what it is about"
        assert cloud_kinds(up(session)) == {("alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate", "update")}
        after = cloud.snapshot()["resources"]
        assert after["instance"] == before["instance"], "living nodes stay as they are"
        assert default_version(after)["number"] > default_version(before)["number"]
        assert default_version(after)["data"]["UserData"] != default_version(before)["data"]["UserData"]
        assert default_version(before)["data"]["SystemDisk.Encrypted"] == "true"
        assert default_version(after)["data"]["SystemDisk.Encrypted"] == "true"
        assert session.deployment.preview().changed == ()

    with ExitStack() as stack:
        session = life.session(stack)
        cloud = session.cloud
        assert cloud is not None
        # An instance vanishes behind the engine's back: refresh finds it, up makes it again.
        cloud.vanish(instances(cloud)["login-0"])
        drift = session.deployment.refresh(preview_only=True)
        assert ("alicloud:ecs/instance:Instance", "delete") in cloud_kinds(drift)
        session.deployment.refresh()
        up(session)
        assert cloud.counts()["instance"] == 2

        # Much vanishes, and nobody refreshes: destroy finds out by itself. The provider would otherwise try for five
        # minutes to take the address of the login node from an instance that is not there, and fail.
        for identity in instances(cloud).values():
            cloud.vanish(identity)
        take_away(session)
        since = cloud.calls()[-1]["number"]
        destroyed = session.deployment.destroy()
        assert destroyed.succeeded, destroyed.first_error
        assert cloud.counts() == {}, "destroy leaves an empty cloud"
        refused = [call for call in cloud.calls("UnassociateEipAddress", since=since) if call["status"] != 200]
        assert not refused, "nothing was tried in vain"


def found_again(session: Session) -> list[str]:
    """Resources that could not be told by name, if the run had been killed before it knew their ids."""
    state = session.deployment.export()
    begun = [resource for resource in state["resources"] if resource["type"] in LOOKUPS]
    assert {resource["type"] for resource in begun} == set(LOOKUPS), "every kind is in the test's cluster"
    pending = [
        {"type": "creating", "resource": {key: value for key, value in resource.items() if key != "id"}}
        for resource in begun
    ]
    rest = [resource for resource in state["resources"] if resource["type"] not in LOOKUPS]
    adopted = adopt({"resources": rest, "pending_operations": pending}, Api(session.connection()), lambda line: None)
    ids = {resource["urn"]: resource.get("id") for resource in adopted["resources"]}
    return [resource["urn"] for resource in begun if ids.get(resource["urn"]) != resource["id"]]


def default_version(resources: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The default version of the only launch template."""
    (template,) = resources["launch_template"]
    number = template["default_version"]
    return next(version for version in resources["launch_template_version"] if version["number"] == number)


def instances(cloud: LocalCloud) -> dict[str, str]:
    """Ids of the instances by host name."""
    return {_name(document): _identity(document) for document in cloud.snapshot()["resources"]["instance"]}


def take_away(session: Session) -> None:
    """Delete resources of each service through the API, as somebody at the console might."""
    cloud = session.cloud
    assert cloud is not None
    record, found = cloud.record, cloud.snapshot()["resources"]
    api = Cloud(cloud.endpoint, "cn-hangzhou", record.access_key_id, record.access_key_secret)
    for target in found["mount_target"]:
        api.call(
            "nas",
            "DeleteMountTarget",
            {"FileSystemId": target["file_system_id"], "MountTargetDomain": target["domain"]},
        )
    api.call("ecs", "DeleteLaunchTemplate", {"LaunchTemplateId": found["launch_template"][0]["id"]})
    api.call("ecs", "DeleteKeyPairs", {"KeyPairNames": json.dumps([found["key_pair"][0]["name"]])})
    snat = found["snat"][0]
    api.call("vpc", "DeleteSnatEntry", {"SnatTableId": snat["snat_table_id"], "SnatEntryId": snat["id"]})


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
