from __future__ import annotations

import base64
import json
import subprocess
import sys

import pytest
from registering import registered, small

from components import keygen
from components.ram_policy import assume_role_document, management_document
from components.roles import role_name
from hpc.elastic.actions import ACTIONS as DECLARED
from hpc.paths import PROJECT_ROOT
from hpc.spec.cluster import ClusterSpec


def generated(kind: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "components.keygen", kind],
        cwd=PROJECT_ROOT,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_an_ssh_key_pair_belongs_together(tmp_path) -> None:
    done = generated("ssh-key")
    assert (done.returncode, done.stderr) == (0, "")
    pair = json.loads(done.stdout)
    path = tmp_path / "key"
    path.write_text(pair["private"])
    path.chmod(0o600)
    public = subprocess.run(["ssh-keygen", "-y", "-f", path], capture_output=True, text=True, check=True).stdout
    assert public.split()[:2] == pair["public"].split()[:2]
    assert pair["public"].startswith("ssh-rsa ")


def test_a_munge_key_and_a_password_are_long_and_never_the_same() -> None:
    keys = {generated("munge-key").stdout for _ in range(2)}
    assert len(keys) == 2
    assert all(len(base64.b64decode(key)) == keygen.MUNGE_KEY_BYTES for key in keys)
    passwords = {keygen.password() for _ in range(50)}
    assert len(passwords) == 50
    # It goes through shell assignments and configuration files.
    assert all(len(word) >= 43 and word.replace("-", "").replace("_", "").isalnum() for word in passwords)


def test_an_update_gives_the_same_secret_again() -> None:
    done = generated("keep", PULUMI_COMMAND_STDOUT="the secret\nof before")
    assert (done.returncode, done.stdout) == (0, "the secret\nof before")


@pytest.mark.parametrize(("kind", "environment"), [("keep", {}), ("nonsense", {}), ("ssh-key", {"PATH": "/nowhere"})])
def test_a_failure_is_one_line_and_gives_nothing(kind: str, environment: dict[str, str]) -> None:
    done = generated(kind, **environment)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


ACTIONS = ("ecs:RunInstances", "ecs:DescribeInstances", "ecs:DeleteInstances", "nas:DescribeMountTargets")


def test_the_policy_allows_exactly_what_the_code_calls() -> None:
    document = json.loads(management_document(ACTIONS, "cn-hangzhou", "hpc-c-Compute"))
    reading, changing, passing = document["Statement"]
    assert sorted([*reading["Action"], *changing["Action"]]) == sorted(ACTIONS)
    assert reading["Resource"] == "*"
    assert all(action.split(":")[1].startswith("Describe") for action in reading["Action"])
    assert changing["Resource"] == ["acs:ecs:cn-hangzhou:*:*", "acs:vpc:cn-hangzhou:*:*"]
    assert passing == {
        "Effect": "Allow",
        "Action": "ram:PassRole",
        "Resource": "acs:ram:*:*:role/hpc-c-compute",
        "Condition": {"StringEquals": {"acs:Service": "ecs.aliyuncs.com"}},
    }


@pytest.mark.parametrize("action", ["*", "ecs:*", "ecs:Describe*", "ecs", "ecs:", ":RunInstances", ""])
def test_no_policy_has_a_wildcard_action(action: str) -> None:
    with pytest.raises(ValueError, match="single action"):
        management_document(["ecs:RunInstances", action], "cn-hangzhou", "r")


def test_the_management_role_gets_what_the_elastic_code_declares() -> None:
    policy = json.loads(registered(small()).named("c-roles-management-policy").inputs["policyDocument"])
    allowed = [
        action
        for statement in policy["Statement"]
        if isinstance(statement["Action"], list)
        for action in statement["Action"]
    ]
    assert sorted(allowed) == sorted(set(DECLARED) - {"ram:PassRole"})
    assert "ecs:RunInstances" in allowed


def test_the_policy_is_the_same_whatever_the_order() -> None:
    assert management_document(ACTIONS, "r", "c") == management_document([*ACTIONS[::-1], ACTIONS[0]], "r", "c")


def test_roles_and_who_may_take_them() -> None:
    done = registered(small())
    roles = {role.inputs["roleName"]: role for role in done.of(":Role")}
    assert set(roles) == {"hpc-c-cn-hangzhou-management", "hpc-c-cn-hangzhou-compute"}
    for role in roles.values():
        trust = json.loads(role.inputs["assumeRolePolicyDocument"])
        assert trust["Statement"] == [
            {"Action": "sts:AssumeRole", "Effect": "Allow", "Principal": {"Service": ["ecs.aliyuncs.com"]}}
        ]
    # Users' programs run on compute nodes: their role has no permission at all.
    (attachment,) = done.of(":RolePolicyAttachment")
    assert attachment.inputs["roleName"] == "hpc-c-cn-hangzhou-management"
    assert done.named("c-management-0-role").inputs["ramRoleName"] == "hpc-c-cn-hangzhou-management"
    assert done.named("c-pool-a-template").inputs["ramRoleName"] == "hpc-c-cn-hangzhou-compute"
    assert assume_role_document() == roles["hpc-c-cn-hangzhou-compute"].inputs["assumeRolePolicyDocument"]


def test_the_longest_role_name_is_not_too_long() -> None:
    spec = ClusterSpec.model_validate(small(name="c" * 24, region="ap-southeast-1", zones=["ap-southeast-1a"]))
    assert len(role_name(spec, "management")) <= 64
