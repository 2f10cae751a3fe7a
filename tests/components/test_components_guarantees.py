"""Promises that hold for every resource of a cluster: tags, protection, plain values, secrets, order of deletion."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from provider_schema import schema
from registering import (
    MUNGE_KEY,
    PASSWORD,
    PRIVATE_KEY,
    SECRETS,
    STACKS,
    Run,
    registered,
    small,
    stack_values,
)

from components.provider import LocalCloud
from components.recording import UNKNOWN, Registered, SecretValue, unwrap
from hpc.paths import PROJECT_ROOT


def taggable(resource: Registered) -> bool:
    return "tags" in schema()["resources"].get(resource.type, {"inputs": {}})["inputs"]


@pytest.mark.parametrize("name", STACKS)
def test_everything_that_can_have_tags_has_them(name: str) -> None:
    values = stack_values(name)
    found = [resource for resource in registered(values).resources if taggable(resource)]
    assert len(found) > 10
    for resource in found:
        tags = resource.inputs["tags"]
        assert tags["hpc:cluster"] == values["name"], resource.name
        assert tags["hpc:role"], resource.name
        assert values.get("tags", {}).items() <= tags.items(), resource.name


def test_disks_and_elastic_nodes_get_tags_too() -> None:
    done = registered(small(tags={"owner": "me"}))
    for instance in done.of(":Instance"):
        assert instance.inputs["volumeTags"] == instance.inputs["tags"]
    template = done.named("c-pool-a-template")
    assert template.inputs["tags"] == template.inputs["templateTags"]
    assert template.inputs["tags"]["hpc:pool"] == "a"


def test_file_systems_and_management_nodes_are_protected_and_nothing_else() -> None:
    done = registered(stack_values("prod"))
    protected = {resource.name for resource in done.resources if resource.protect}
    assert protected == {"prod-storage-home", "prod-storage-scratch", "prod-management-0", "prod-management-1"}
    assert {r.name for r in done.resources if r.retain_on_delete} == {"prod-storage-home", "prod-storage-scratch"}


def test_protection_and_keeping_can_be_switched_off() -> None:
    done = registered(small(protect=False, storage=[{"mount": "/home", "retain": False}]))
    assert not [resource for resource in done.resources if resource.protect or resource.retain_on_delete]
    assert all(instance.inputs["deletionProtection"] is False for instance in done.of(":Instance"))


def test_a_subscription_can_be_destroyed_only_where_that_is_allowed() -> None:
    prepaid = {"charge": "prepaid", "period_months": 4}
    kept = registered(small(management=prepaid)).named("c-management-0").inputs
    assert "forceDelete" not in kept
    assert "deletionProtection" not in kept  # ECS refuses it for subscriptions
    assert (kept["period"], kept["autoRenewPeriod"]) == (4, 3)
    assert registered(small(management=prepaid, protect=False)).named("c-management-0").inputs["forceDelete"] is True


#: Inputs that policies judge, by the last part of the type.
JUDGED = {
    ":Instance": (
        "instanceType", "imageId", "instanceChargeType", "httpTokens", "internetMaxBandwidthOut",
        "systemDiskEncrypted", "systemDiskSize", "tags", "volumeTags",
    ),
    ":EcsLaunchTemplate": (
        "instanceType", "imageId", "instanceChargeType", "spotStrategy", "httpTokens", "internetMaxBandwidthOut",
        "systemDisk", "tags", "templateTags",
    ),
    ":SecurityGroup": ("innerAccessPolicy", "securityGroupType", "tags"),
    ":SecurityGroupRule": ("type", "ipProtocol", "portRange", "policy"),
    ":FileSystem": ("encryptType", "storageType", "fileSystemType", "tags"),
    ":AccessRule": ("sourceCidrIp", "userAccessType", "rwAccessType"),
    ":Policy": ("policyDocument",),
    ":Role": ("assumeRolePolicyDocument",),
    ":Network": (),
    ":EipAddress": ("bandwidth", "internetChargeType"),
}  # fmt: skip


def unknown(value: Any) -> bool:
    value = unwrap(value)
    if isinstance(value, dict):
        return any(unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(unknown(item) for item in value)
    return value is UNKNOWN


@pytest.mark.parametrize("name", STACKS)
def test_nothing_that_a_policy_judges_is_unknown_at_a_first_preview(name: str) -> None:
    done = registered(stack_values(name), preview=True)
    for suffix, keys in JUDGED.items():
        found = [resource for resource in done.of(suffix) if resource.custom]
        assert found, suffix
        for resource in found:
            for key in keys:
                assert key in resource.inputs, (resource.name, key)
                value = resource.inputs[key]
                if key == "systemDisk":
                    value = {part: value[part] for part in ("category", "size", "encrypted", "performanceLevel")}
                assert not unknown(value), (resource.name, key)
    for component in done.resources:
        if not component.custom:
            assert not unknown(component.inputs), component.name


def test_a_pool_shows_policies_what_they_judge() -> None:
    done = registered(stack_values("prod"), preview=True)
    pool = done.named("prod-pool-mpi").inputs
    assert pool["instanceTypes"] == ["ecs.hpc8ae.32xlarge"]
    assert (pool["min"], pool["max"], pool["charge"]) == (0, 16, "payg")
    assert (pool["interconnect"], pool["trafficMode"]) == ("erdma", "HighPerformance")
    assert (pool["idleSeconds"], pool["autoReleaseSeconds"], pool["maxLifetimeSeconds"]) == (600, 3600, 7 * 86400)
    assert pool["zones"] == ["cn-hangzhou-j"]
    assert (pool["mpiPorts"], pool["placement"], pool["publicIp"]) == ("30000/31000", "low-latency", False)
    assert pool["vcpusPerNode"] == 64
    assert pool["worstHourly"] == pytest.approx(pool["nodeHourly"] * 16, abs=0.01)
    cluster = done.named("prod").inputs
    assert cluster["maxNodes"] == 48
    assert cluster["budget"] == {"maxHourly": 2000, "expectedMonthly": 300000, "currency": "CNY"}
    assert cluster["worstHourly"] > pool["worstHourly"] > 0


def test_a_pool_without_erdma_says_so() -> None:
    pools = [{"name": "a", "instance_types": ["ecs.c8i.large"], "interconnect": "tcp"}]
    assert registered(small(pools=pools)).named("c-pool-a").inputs["trafficMode"] == "Standard"


def secrets_in_clear(value: Any) -> bool:
    """Whether a secret can be read in a value without a key; secrets marked as such cannot."""
    if isinstance(value, SecretValue):
        return False
    if isinstance(value, dict):
        return any(secrets_in_clear(item) for item in value.values())
    if isinstance(value, list):
        return any(secrets_in_clear(item) for item in value)
    return isinstance(value, str) and any(secret in value for secret in SECRETS)


@pytest.mark.parametrize("name", STACKS)
def test_no_secret_is_in_clear_anywhere(name: str) -> None:
    done = registered(stack_values(name))
    assert not [r.name for r in done.resources if secrets_in_clear(r.inputs)]
    assert not secrets_in_clear(done.recording.outputs)
    assert not [text for _, text in done.recording.log if any(secret in text for secret in SECRETS)]
    assert done.recording.outputs["ssh_private_key"] == SecretValue(PRIVATE_KEY)


def test_the_public_key_is_not_a_secret() -> None:
    assert registered(small()).named("c-access-key-pair").inputs["publicKey"].startswith("ssh-rsa ")


@pytest.mark.parametrize("name", STACKS)
def test_user_data_holds_no_secret(name: str) -> None:
    for template in registered(stack_values(name)).of(":EcsLaunchTemplate"):
        text = base64.b64decode(template.inputs["userData"]).decode()
        assert text.startswith(("#!", "#cloud-config", "Content-Type"))
        assert not [secret for secret in (PRIVATE_KEY, MUNGE_KEY, PASSWORD) if secret in text]


def test_commands_that_make_secrets_log_nothing_and_never_run_twice() -> None:
    commands = [r for r in registered(small()).of("local:Command") if r.inputs.get("create")]
    assert {command.inputs["create"] for command in commands} == {"ssh-key", "munge-key", "password"}
    for command in commands:
        assert command.inputs["logging"] == "none"
        assert command.inputs["update"] == "keep"
        assert {"stdout", "stderr"} <= set(command.secret_outputs)
        assert "triggers" not in command.inputs
        assert {"interpreter", "dir"} <= set(command.ignore_changes)


def before(done: Run, resource: Registered) -> set[str]:
    """URNs that are deleted only after a resource is gone."""
    known, seen, todo = done.by_urn, set(), list(resource.depends_on)
    while todo:
        urn = todo.pop()
        if urn not in seen:
            seen.add(urn)
            todo += known[urn].depends_on if urn in known else ()
    return seen


@pytest.mark.parametrize("name", STACKS)
def test_elastic_nodes_are_swept_before_anything_that_they_use_and_after_the_daemon_is_gone(name: str) -> None:
    values = stack_values(name)
    done = registered(values)
    cluster = values["name"]
    first, late = done.named(f"{cluster}-sweep-command"), done.named(f"{cluster}-late-sweep-command")
    used = (
        ":Switch", ":SecurityGroup", ":SecurityGroupRule", ":EcsLaunchTemplate", ":EcsKeyPair", ":MountTarget",
        ":Role", ":Policy", ":RolePolicyAttachment", ":AccessRule", ":FileSystem", ":EcsDeploymentSet", ":SnatEntry",
    )  # fmt: skip
    for sweep in (first, late):
        outlive = before(done, sweep)
        missing = [r.name for suffix in used for r in done.of(suffix) if r.urn not in outlive]
        assert missing == []
    # Once before the management nodes go (elastic nodes cost most), and once after: nobody starts new ones by then.
    for index in range(2 if values["management"].get("backup") else 1) if "management" in values else range(1):
        manager = done.named(f"{cluster}-management-{index}")
        assert manager.urn in before(done, first)
        assert late.urn in before(done, manager)


@pytest.mark.parametrize("name", STACKS)
def test_nodes_are_set_up_only_once_everything_is_there(name: str) -> None:
    values = stack_values(name)
    done = registered(values)
    commands = [r for r in done.resources if r.type.startswith("command:remote:")]
    assert len(commands) >= 4
    needed = (
        ":EipAssociation", ":SecurityGroupRule", ":MountTarget", ":AccessRule", ":SnatEntry", ":RamRoleAttachment",
        ":RolePolicyAttachment", ":EcsLaunchTemplate", ":Instance",
    )  # fmt: skip
    for command in commands:
        there = before(done, command)
        assert [r.name for suffix in needed for r in done.of(suffix) if r.urn not in there] == [], command.name
    sweep = done.named(f"{values['name']}-sweep-command")
    assert {command.urn for command in commands} <= before(done, sweep)


def test_an_api_without_hosts_has_nothing_to_set_up() -> None:
    local = LocalCloud("127.0.0.1:9099", "id", "secret", hosts=False)
    assert not [r for r in registered(small(), local=local).resources if "bootstrap" in r.type.lower()]
    hosts = registered(small(), local=LocalCloud("127.0.0.1:9099", "id", "secret", hosts=True))
    assert hosts.named("c-bootstrap-management-0").type == "command:remote:Command"


def test_the_sweep_needs_no_path_of_this_machine_and_no_credentials_as_arguments() -> None:
    command = registered(small()).named("c-sweep-command").inputs
    assert set(command) == {"delete"}
    assert "hpc.elastic.sweep --cluster c --region cn-hangzhou" in command["delete"]
    assert str(PROJECT_ROOT) not in command["delete"]
    assert "ALIBABA" not in command["delete"]


@pytest.mark.parametrize("name", STACKS)
def test_components_are_grouped_under_the_cluster(name: str) -> None:
    done = registered(stack_values(name))
    root = done.of("hpc:cluster:Cluster")[0]
    for resource in done.resources:
        module = resource.type.split(":")[1]
        if not resource.custom and resource is not root:
            assert resource.parent == root.urn
            assert resource.type == f"hpc:{module}:{module.capitalize()}"
        if resource.custom:
            assert resource.parent in done.by_urn
        assert resource.name.startswith(root.name)
