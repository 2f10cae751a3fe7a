"""Keys for a job that has nothing but the token of its CI system."""

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

import httpx
import oidc_issuer
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from direct_cloud import Direct
from oidc_issuer import AUDIENCE, SUBJECT, Issuer, trust
from test_api_protocol import error, post, signed

from hpc.paths import PROJECT_ROOT
from localcloud.api.client import LocalCloud
from localcloud.api.errors import ApiError

IMS, RAM, STS = {"Version": "2019-08-15"}, {"Version": "2015-05-01"}, {"Version": "2015-04-01"}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with oidc_issuer.running() as made:
        yield made


def names(account: str) -> dict[str, str]:
    return {
        "OIDCProviderArn": f"acs:ram::{account}:oidc-provider/ci",
        "RoleArn": f"acs:ram::{account}:role/deploy",
        "RoleSessionName": "job-1",
    }


@pytest.fixture
def trusting(direct: Direct, issuer: Issuer) -> dict[str, str]:
    """A provider and a role that trusts it; what a job has to say except its token."""
    said = names(direct.server.account_id)
    direct.call("ims", "CreateOIDCProvider", OIDCProviderName="ci", IssuerUrl=issuer.url, ClientIds=f"other,{AUDIENCE}")
    direct.call("ram", "CreateRole", RoleName="deploy", AssumeRolePolicyDocument=trust(said["OIDCProviderArn"]))
    return said


def test_a_token_becomes_a_session_of_the_role(direct: Direct, issuer: Issuer, trusting: dict[str, str]) -> None:
    answer = direct.call("sts", "AssumeRoleWithOIDC", OIDCToken=issuer.token(), **trusting)
    found = direct.server.store.credential(answer["Credentials"]["AccessKeyId"])
    assert found is not None
    assert found[2:4] == ("deploy", "job-1")
    assert answer["OIDCTokenInfo"]["Subject"] == SUBJECT
    assert answer["AssumedRoleUser"]["Arn"].endswith(":assumed-role/deploy/job-1")
    direct.call("sts", "AssumeRoleWithOIDC", OIDCToken=issuer.token(), **trusting)
    assert issuer.asked == 2, "configuration and keys, once"


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"exp": 1}, "AuthenticationFail.OIDCToken.Expired"),
        ({"aud": "someone-else"}, "AuthenticationFail.OIDCToken.AudienceNotMatch"),
        ({"iss": "https://token.example"}, "AuthenticationFail.OIDCToken.Invalid"),
        ({"iat": 1_000_000_000}, "AuthenticationFail.OIDCToken.Invalid"),
        ({"iat": None}, "AuthenticationFail.OIDCToken.Invalid"),
        ({"sub": None}, "AuthenticationFail.OIDCToken.Invalid"),
        ({"kid": "two"}, "AuthenticationFail.OIDCToken.InvalidSignature"),
        ({"key": ec.generate_private_key(ec.SECP256R1())}, "AuthenticationFail.OIDCToken.InvalidSignature"),
        ({"sub": "repo:owner/repository:pull_request"}, "NoPermission"),
        ({"aud": "other"}, "NoPermission"),
    ],
)
def test_tokens_that_are_not_taken(
    direct: Direct, issuer: Issuer, trusting: dict[str, str], claims: dict[str, Any], code: str
) -> None:
    assert direct.code("sts", "AssumeRoleWithOIDC", OIDCToken=issuer.token(**claims), **trusting) == code


@pytest.mark.parametrize("token", ["xxxx", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJIUzI1NiJ9.e30.AAAA"])
def test_what_is_no_token(direct: Direct, trusting: dict[str, str], token: str) -> None:
    assert direct.code("sts", "AssumeRoleWithOIDC", OIDCToken=token, **trusting) == (
        "AuthenticationFail.OIDCToken.Invalid"
    )


def test_wrong_names(direct: Direct, issuer: Issuer, trusting: dict[str, str]) -> None:
    def code(**changes: str) -> str:
        return direct.code("sts", "AssumeRoleWithOIDC", **{**trusting, "OIDCToken": issuer.token(), **changes})

    assert code(OIDCProviderArn="acs:ram::1:oidc-provider/none") == "AuthenticationFail.NoPermission"
    assert code(RoleArn=trusting["RoleArn"] + "x") == "EntityNotExist.Role"
    assert code(RoleArn="role") == "InvalidParameter.RoleArn"
    assert code(RoleSessionName="x") == "InvalidParameter.RoleSessionName"
    assert code(DurationSeconds="899") == "InvalidParameter.DurationSeconds"
    assert code(Policy="{}") == "UnsupportedOperation"
    assert code(OIDCToken="x") == "InvalidParameter.OIDCToken"
    direct.call("ims", "DeleteOIDCProvider", OIDCProviderName="ci")
    assert code() == "AuthenticationFail.NoPermission"


def test_an_issuer_that_gives_no_keys(direct: Direct, issuer: Issuer, trusting: dict[str, str]) -> None:
    issuer.broken = True
    for _ in range(3):
        assert direct.code("sts", "AssumeRoleWithOIDC", OIDCToken=issuer.token(), **trusting) == (
            "AuthenticationFail.OIDCToken.IssuerConfigurationBroken"
        )
    assert issuer.asked == 1, "not asked again at once"


def test_a_role_that_trusts_another_provider(direct: Direct, issuer: Issuer, trusting: dict[str, str]) -> None:
    other = trust(trusting["OIDCProviderArn"] + "2")
    direct.call("ram", "UpdateRole", RoleName="deploy", NewAssumeRolePolicyDocument=other)
    with pytest.raises(ApiError) as caught:
        direct.call("sts", "AssumeRoleWithOIDC", OIDCToken=issuer.token(), **trusting)
    assert (caught.value.status, caught.value.code) == (403, "NoPermission")
    unknown = trust(trusting["OIDCProviderArn"], **{"oidc:branch": ["main"]})
    direct.call("ram", "UpdateRole", RoleName="deploy", NewAssumeRolePolicyDocument=unknown)
    assert direct.code("sts", "AssumeRoleWithOIDC", OIDCToken=issuer.token(), **trusting) == "NoPermission"


@pytest.mark.parametrize(
    "url",
    ["http://example.com", "ftp://x", "https://", "https://u@x", "https://x?q=1", "https://x#f", "file:///etc", "x",
     "https://[", "http://127.0.0.1.example.com"],
)  # fmt: skip
def test_addresses_that_cannot_be_issuers(direct: Direct, url: str) -> None:
    assert direct.code("ims", "CreateOIDCProvider", OIDCProviderName="p", IssuerUrl=url) == (
        "InvalidParameter.IssuerUrl"
    )


def test_providers_are_unique_by_name_and_issuer(direct: Direct) -> None:
    made = {"OIDCProviderName": "p", "IssuerUrl": "https://gitlab.example", "ClientIds": "a,b"}
    assert direct.call("ims", "CreateOIDCProvider", **made)["OIDCProvider"]["ClientIds"] == "a,b"
    assert direct.code("ims", "CreateOIDCProvider", **made) == "EntityAlreadyExists.OIDCProvider"
    again = {**made, "OIDCProviderName": "q"}
    assert direct.code("ims", "CreateOIDCProvider", **again) == "EntityAlreadyExists.OIDCProvider.IssuerUrl"
    assert direct.code("ims", "CreateOIDCProvider", **{**again, "OIDCProviderName": "-"}) == (
        "InvalidParameter.OIDCProviderName"
    )


def test_the_script_of_the_pipelines_gets_working_keys(cloud: LocalCloud, issuer: Issuer, tmp_path: Path) -> None:
    """The whole exchange over HTTP: nothing is signed, and the keys that come of it work."""
    said = names(cloud.record.account_id)
    provider, role = {"OIDCProviderName": "ci", **IMS}, {"RoleName": "deploy", **RAM}
    for made in (
        signed(cloud, "CreateOIDCProvider", IssuerUrl=issuer.url, ClientIds=AUDIENCE, **provider),
        signed(cloud, "CreateRole", AssumeRolePolicyDocument=trust(said["OIDCProviderArn"]), **role),
    ):
        assert post(cloud, made).status_code == 200
    keys = tmp_path / "keys"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ACTIONS_", "GITHUB_"))},
        "ALIBABA_CLOUD_ROLE_ARN": said["RoleArn"],
        "ALIBABA_CLOUD_OIDC_PROVIDER_ARN": said["OIDCProviderArn"],
        "ALIBABA_CLOUD_STS_ENDPOINT": cloud.url,
        "ALIBABA_CLOUD_OIDC_TOKEN": issuer.token(),
        "NO_PROXY": "127.0.0.1",
    }
    script = [sys.executable, str(PROJECT_ROOT / "scripts" / "pipeline" / "assume_role.py"), str(keys)]
    since = cloud.calls()[-1]["number"]
    try:
        done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        got = dict(line.split("=", 1) for line in keys.read_text().splitlines())
        answer = post(
            cloud,
            signed(
                cloud, "GetCallerIdentity", AccessKeyId=got["ALIBABA_CLOUD_ACCESS_KEY_ID"],
                _secret=got["ALIBABA_CLOUD_ACCESS_KEY_SECRET"],
                SecurityToken=got["ALIBABA_CLOUD_SECURITY_TOKEN"], **STS,
            ),
        ).json()  # fmt: skip
        assert "/deploy/hpc-pipeline-" in answer["Arn"]
        assert environment["ALIBABA_CLOUD_OIDC_TOKEN"] not in json.dumps(cloud.calls(since=since))
        environment["ALIBABA_CLOUD_OIDC_TOKEN"] = issuer.token(sub="repo:owner/repository:pull_request")
        done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert "NoPermission" in done.stderr
    finally:
        post(cloud, signed(cloud, "DeleteOIDCProvider", **provider))
        post(cloud, signed(cloud, "DeleteRole", **role))


def test_only_this_action_goes_without_a_signature(cloud: LocalCloud) -> None:
    for action, version in (("AssumeRole", STS), ("CreateOIDCProvider", IMS), ("GetCallerIdentity", STS)):
        response = httpx.post(cloud.url, data={"Action": action, "Format": "JSON", **version}, trust_env=False)
        assert error(response) == (400, "MissingAccessKeyId")


def test_an_issuer_that_does_not_answer_holds_nobody_up(cloud: LocalCloud) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        provider = {"OIDCProviderName": "silent", **IMS}
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        post(cloud, signed(cloud, "CreateOIDCProvider", IssuerUrl=url, ClientIds="a", **provider))
        role = {"RoleName": "deploy", **RAM}
        arn = f"acs:ram::{cloud.record.account_id}:oidc-provider/silent"
        post(cloud, signed(cloud, "CreateRole", AssumeRolePolicyDocument=trust(arn), **role))
        said = {**names(cloud.record.account_id), "OIDCProviderArn": arn, "OIDCToken": "eyJhbGciOiJFUzI1NiJ9.e30.AAAA"}
        form = {"Action": "AssumeRoleWithOIDC", "Format": "JSON", **STS, **said}
        answers: list[httpx.Response] = []
        waiting = threading.Thread(
            target=lambda: answers.append(httpx.post(cloud.url, data=form, trust_env=False, timeout=30))
        )
        waiting.start()
        time.sleep(0.3)
        started = time.monotonic()
        assert post(cloud, signed(cloud, "DescribeRegions")).status_code == 200
        assert time.monotonic() - started < 2
        waiting.join(30)
        assert error(answers[0]) == (401, "AuthenticationFail.OIDCToken.IssuerConfigurationBroken")
        post(cloud, signed(cloud, "DeleteOIDCProvider", **provider))
        post(cloud, signed(cloud, "DeleteRole", **role))
