"""The program and what is around the components: image look-up, the local cloud, the offline plan."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest
import yaml
from registering import STACKS, after_up, changed, registered, small, stack_values

from components.images import ImageFinder
from components.provider import LocalCloud, local_cloud
from components.recording import Recording, SecretValue, record, record_into
from hpc.catalog import load_catalog
from hpc.errors import CannotRunError, HpcError, RefusedError
from hpc.findings import FindingsError
from hpc.paths import PROJECT_ROOT
from hpc.plan import catalog_invokes, plan_cluster
from hpc.spec.cluster import ClusterSpec
from hpc.spec.image import ImageSpec

KEYS = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "id-of-tests", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "secret-of-tests"}


def run_program(
    values: Any, monkeypatch: pytest.MonkeyPatch, stack: str = "test", **environment: str
) -> tuple[Recording, Exception | None]:
    for name in ("HPC_LOCAL_ENDPOINT", *KEYS):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    recording = Recording()
    config = {"hpc:cluster": json.dumps(values), "alicloud:region": "cn-hangzhou"}
    try:
        record_into(
            recording,
            lambda: runpy.run_path(str(PROJECT_ROOT / "__main__.py"), run_name="__main__") and None,
            invokes=catalog_invokes(load_catalog()),
            outputs=after_up,
            config=config,
            project="hpc",
            stack=stack,
        )
    except Exception as error:
        return recording, error
    return recording, None


def test_the_program_is_short() -> None:
    assert len((PROJECT_ROOT / "__main__.py").read_text().splitlines()) < 40


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_the_program_makes_the_shipped_stacks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = stack_values(name)
    recording, error = run_program(values, monkeypatch)
    assert error is None
    assert {r.urn.split("::")[2:][0] for r in recording.resources} == {
        r.urn.split("::")[2:][0] for r in registered(values).resources
    }
    outputs = recording.outputs
    assert outputs["ssh"] == "ssh root@198.51.100.7"
    assert set(outputs) == {"ssh", "login", "management", "mounts", "pools", "price", "vpc_id", "ssh_private_key"}
    assert list(outputs["pools"]) == [pool["name"] for pool in values["pools"]] or set(outputs["pools"])
    assert float(outputs["price"]["hour_at_worst"]) > float(outputs["price"]["hour_at_zero"]) > 0


@pytest.mark.parametrize(
    "values", [{}, [], "x", None, {"name": "UPPER"}, changed(small(), pools=[]), changed(small(), surprise=1)]
)
def test_a_wrong_stack_file_ends_without_resources_and_without_a_traceback(
    values: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, error = run_program(values, monkeypatch)
    assert isinstance(error, pulumi.RunError)  # the engine shows its message and no traceback
    assert recording.resources == []
    if values is not None:
        assert [text for severity, text in recording.log if severity == "error"]


def test_a_broken_cap_ends_the_program_without_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    recording, error = run_program(changed(small(), budget={"max_hourly": 1}), monkeypatch)
    assert isinstance(error, pulumi.RunError)
    assert "HPC601" in str(error)
    assert recording.resources == []


def test_the_local_stack_never_reaches_a_real_account(monkeypatch: pytest.MonkeyPatch) -> None:
    recording, error = run_program(stack_values("local"), monkeypatch, stack="local")
    assert isinstance(error, pulumi.RunError)
    assert "HPC702" in str(error)
    assert recording.resources == []


def test_a_local_cloud_is_one_explicit_provider_for_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    recording, error = run_program(
        stack_values("local"), monkeypatch, stack="local", HPC_LOCAL_ENDPOINT="127.0.0.1:9099", **KEYS
    )
    assert error is None
    (provider,) = [r for r in recording.resources if r.type == "pulumi:providers:alicloud"]
    assert provider.inputs["protocol"] == "HTTP"
    assert provider.inputs["accountType"] == "Domestic"
    # Every input of a provider is a string of JSON unless it is a string already.
    endpoints = json.loads(provider.inputs["endpoints"])
    assert {value for entry in endpoints for value in entry.values()} == {"127.0.0.1:9099"}
    assert {"ecs", "vpc", "nas", "ram", "sts"} <= endpoints[0].keys()
    assert provider.inputs["accessKey"] == SecretValue("id-of-tests")
    assert provider.inputs["secretKey"] == SecretValue("secret-of-tests")
    clouds = {r.provider.split("::")[-2] for r in recording.resources if r.type.startswith("alicloud:")}
    assert clouds == {provider.name}
    text = repr([r.inputs for r in recording.resources])
    assert "secret-of-tests" not in text


@pytest.mark.parametrize(
    ("stack", "environment", "code"),
    [
        ("local", {}, "HPC702"),
        ("dev", {"HPC_LOCAL_ENDPOINT": "http://127.0.0.1:9"} | KEYS, "HPC701"),
        ("dev", {"HPC_LOCAL_ENDPOINT": "127.0.0.1"} | KEYS, "HPC701"),
        ("dev", {"HPC_LOCAL_ENDPOINT": "127.0.0.1:9099"}, "HPC703"),
        ("dev", {"HPC_LOCAL_ENDPOINT": "127.0.0.1:9099", "ALIBABA_CLOUD_ACCESS_KEY_ID": "x"}, "HPC703"),
    ],
)
def test_a_wrong_environment_is_explained(stack: str, environment: dict[str, str], code: str) -> None:
    with pytest.raises(RefusedError) as caught:
        local_cloud(stack, environment)
    assert caught.value.code == code


def test_without_a_local_cloud_the_default_provider_is_used() -> None:
    assert local_cloud("dev", {}) is None
    assert not [r for r in registered(small()).resources if r.type.startswith("pulumi:providers")]


def test_the_key_of_a_local_cloud_is_not_shown() -> None:
    assert "hidden" not in repr(LocalCloud("127.0.0.1:1", "id", "hidden"))


class Cloud:
    """Counts the look-ups of images."""

    def __init__(self, ids: list[str]) -> None:
        self.ids = ids
        self.asked: list[Mapping[str, Any]] = []

    def __call__(self, token: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        assert token == "alicloud:ecs/getImages:getImages"
        self.asked.append(arguments)
        return {"ids": self.ids, "images": []}


def found(cloud: Cloud, *wanted: tuple[ImageSpec, str]) -> list[str]:
    answers: list[str] = []

    def program() -> None:
        finder = ImageFinder(load_catalog())
        answers.extend(finder.image_id(image, kind) for image, kind in wanted)

    record(program, invokes=cloud)
    return answers


def test_images_are_looked_up_once_for_each_distribution_and_architecture() -> None:
    cloud = Cloud(["newest", "older"])
    rocky, alinux = ImageSpec(os="rocky-9"), ImageSpec(os="alinux-3")
    wanted = [(rocky, "ecs.c8ae.4xlarge"), (rocky, "ecs.c8a.16xlarge"), (alinux, "ecs.c8ae.4xlarge")]
    assert found(cloud, *wanted, (alinux, "ecs.c8y.4xlarge")) == ["newest"] * 4
    assert [(a["architecture"], a["owners"], a["mostRecent"]) for a in cloud.asked] == [
        ("x86_64", "system", True),
        ("x86_64", "system", True),
        ("arm64", "system", True),
    ]


def test_an_image_of_ones_own_is_not_looked_up() -> None:
    cloud = Cloud([])
    assert found(cloud, (ImageSpec(image_id="m-own1"), "ecs.c8ae.4xlarge")) == ["m-own1"]
    assert cloud.asked == []


def test_a_region_without_the_image_is_explained() -> None:
    with pytest.raises(CannotRunError, match="HPC706"):
        found(Cloud([]), (ImageSpec(), "ecs.c8ae.4xlarge"))


def test_a_failing_program_leaves_nothing_behind_for_the_next_one() -> None:
    def broken() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        record(broken, invokes=Cloud([]))
    assert len(registered(small()).resources) > 30


@pytest.mark.parametrize("name", STACKS)
def test_the_plan_lists_what_the_program_registers(name: str) -> None:
    values = stack_values(name)
    plan = plan_cluster(ClusterSpec.model_validate(values))
    assert sorted((r.type, r.name) for r in plan.resources) == sorted(
        (r.type, r.name) for r in registered(values).resources
    )
    assert plan.resources[0].type == "hpc:cluster:Cluster"
    document = json.loads(json.dumps([resource.as_dict() for resource in plan.resources]))
    assert all({"type", "name", "summary", "inputs", "protect"} <= entry.keys() for entry in document)
    pool = next(r for r in plan.resources if r.type == "hpc:pool:Pool")
    assert values["pools"][0]["instance_types"][0] in pool.summary


def test_the_plan_shows_what_is_not_known_yet_and_no_secret() -> None:
    plan = plan_cluster(ClusterSpec.model_validate(stack_values("prod")))
    by_name = {resource.name: resource for resource in plan.resources}
    assert by_name["prod-security-members-ssh"].inputs["securityGroupId"] == "(known after up)"
    assert "protected" in by_name["prod-storage-home"].summary
    assert "kept on destroy" in by_name["prod-storage-home"].summary
    assert "PRIVATE" not in repr(plan)


def test_a_plan_of_a_refused_cluster_is_refused() -> None:
    with pytest.raises(FindingsError) as caught:
        plan_cluster(ClusterSpec.model_validate(changed(small(), budget={"max_hourly": 1})))
    assert isinstance(caught.value, HpcError)


def test_the_shipped_stacks_name_the_region_of_their_cluster() -> None:
    for name in STACKS:
        config = yaml.safe_load((PROJECT_ROOT / f"Pulumi.{name}.yaml").read_text())["config"]
        assert config["alicloud:region"] == config["hpc:cluster"]["region"]
