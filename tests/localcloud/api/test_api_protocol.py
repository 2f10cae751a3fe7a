"""The protocol over HTTP: both signature styles, bad input, tokens, knobs, restart after kill -9."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from hpc.errors import CannotRunError, RefusedError
from localcloud.api import launch, signature
from localcloud.api.client import LocalCloud
from localcloud.api.record import Record, process_start

ECS = "2014-05-26"


def stamp(offset: float = 0.0) -> str:
    return datetime.fromtimestamp(time.time() + offset, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def signed(cloud: LocalCloud, action: str, method: str = "POST", **changes: str | None) -> dict[str, str]:
    """Parameters of a request in the older style; a change to None leaves one out."""
    key, secret = cloud.record.access_key_id, cloud.record.access_key_secret
    parameters: dict[str, str | None] = {
        "Action": action, "Version": ECS, "Format": "JSON", "AccessKeyId": key, "SignatureMethod": "HMAC-SHA1",
        "SignatureVersion": "1.0", "SignatureNonce": uuid.uuid4().hex, "Timestamp": stamp(),
    }  # fmt: skip
    secret = changes.pop("_secret", None) or secret
    parameters.update(changes)
    flat = {name: value for name, value in parameters.items() if value is not None}
    if "Signature" not in changes:
        flat["Signature"] = signature.sign_v1(secret, signature.string_to_sign_v1(method, flat))
    return flat


def post(cloud: LocalCloud, parameters: dict[str, str]) -> httpx.Response:
    return httpx.post(cloud.url, data=parameters, trust_env=False)


def error(response: httpx.Response) -> tuple[int, str]:
    document = response.json()
    assert {"RequestId", "HostId", "Code", "Message"} <= set(document)
    return response.status_code, document["Code"]


def acs3(cloud: LocalCloud, action: str, body: bytes = b"", kind: str = "", **changes: str) -> httpx.Response:
    """A request in the newer style."""
    headers = {
        "host": cloud.endpoint, "x-acs-action": action, "x-acs-version": ECS, "x-acs-date": stamp(),
        "x-acs-signature-nonce": uuid.uuid4().hex, "x-acs-content-sha256": hashlib.sha256(body).hexdigest(),
    }  # fmt: skip
    if kind:
        headers["content-type"] = kind
    headers.update({name.replace("_", "-"): value for name, value in changes.items()})
    names = tuple(sorted(headers))
    text = signature.string_to_sign_acs3("POST", "/", (), headers, names, headers["x-acs-content-sha256"])
    made = signature.sign_acs3(cloud.record.access_key_secret, text)
    headers["authorization"] = (
        f"ACS3-HMAC-SHA256 Credential={cloud.record.access_key_id},SignedHeaders={';'.join(names)},Signature={made}"
    )
    return httpx.post(cloud.url, content=body, headers=headers, trust_env=False)


# -- accepted ----------------------------------------------------------------------------------------------------


def test_get_and_post_query_and_form(cloud: LocalCloud) -> None:
    assert post(cloud, signed(cloud, "DescribeRegions")).status_code == 200
    parameters = signed(cloud, "DescribeRegions", "GET")
    assert httpx.get(cloud.url, params=parameters, trust_env=False).status_code == 200
    parameters = signed(cloud, "DescribeRegions")
    half = dict(list(parameters.items())[:4])
    rest = dict(list(parameters.items())[4:])
    assert httpx.post(cloud.url, params=half, data=rest, trust_env=False).status_code == 200


def test_newer_style_with_form_and_json(cloud: LocalCloud) -> None:
    assert acs3(cloud, "DescribeRegions").status_code == 200
    form = urlencode({"RegionId": "cn-hangzhou"}).encode()
    assert acs3(cloud, "DescribeZones", form, "application/x-www-form-urlencoded").status_code == 200
    body = json.dumps({"RegionId": "cn-hangzhou", "InstanceTypes": ["ecs.c7.large"]}).encode()
    answer = acs3(cloud, "DescribeInstanceTypes", body, "application/json").json()
    assert [item["InstanceTypeId"] for item in answer["InstanceTypes"]["InstanceType"]] == ["ecs.c7.large"]


def test_older_signature_with_the_action_in_a_header(cloud: LocalCloud) -> None:
    headers = {"x-acs-action": "DescribeRegions", "x-acs-version": ECS}
    parameters = signed(cloud, "DescribeRegions")
    assert httpx.post(cloud.url, data=parameters, headers=headers, trust_env=False).status_code == 200


def test_xml_unless_json_is_asked_for(cloud: LocalCloud) -> None:
    response = post(cloud, signed(cloud, "DescribeRegions", Format=None))
    assert response.headers["content-type"].startswith("text/xml")
    assert "<DescribeRegionsResponse><RequestId>" in response.text
    assert "<Regions><Region><RegionId>cn-hangzhou</RegionId>" in response.text
    response = post(cloud, signed(cloud, "DescribeNothing", Format="XML"))
    assert "<Error><RequestId>" in response.text
    assert "<Code>InvalidAction.NotFound</Code>" in response.text


def test_https_on_the_same_port(cloud: LocalCloud) -> None:
    context = ssl.create_default_context(cafile=cloud.record.trust_file)
    with httpx.Client(verify=context, trust_env=False) as client:
        response = client.post(cloud.url.replace("http:", "https:"), data=signed(cloud, "DescribeRegions"))
    assert response.status_code == 200


# -- refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"_secret": "wrong"}, (400, "SignatureDoesNotMatch")),
        ({"Signature": None}, (400, "IncompleteSignature")),
        ({"Signature": "AAAA"}, (400, "SignatureDoesNotMatch")),
        ({"AccessKeyId": "nobody"}, (404, "InvalidAccessKeyId.NotFound")),
        ({"Timestamp": "yesterday"}, (400, "InvalidTimeStamp.Format")),
        ({"Timestamp": "2020-01-01T00:00:00Z"}, (400, "InvalidTimeStamp.Expired")),
        ({"SignatureMethod": "PLAIN"}, (400, "InvalidParameter")),
        ({"SignatureNonce": None}, (400, "MissingSignatureNonce")),
        ({"Version": "1999-01-01"}, (400, "InvalidVersion")),
        ({"Version": None}, (400, "MissingVersion")),
        ({"Action": None}, (400, "MissingParameter.Action")),
        ({"Action": "Nothing"}, (404, "InvalidAction.NotFound")),
        ({"RegionId": "mars-north-1"}, (404, "InvalidRegionId.NotFound")),
        ({"NoSuchParameter": "x"}, (400, "InvalidParameter")),
    ],
)
def test_bad_requests(cloud: LocalCloud, changes: dict[str, str | None], expected: tuple[int, str]) -> None:
    assert error(post(cloud, signed(cloud, "DescribeRegions", **changes))) == expected


def test_changed_parameters_break_the_signature(cloud: LocalCloud) -> None:
    parameters = signed(cloud, "DescribeInstances", PageSize="1")
    assert error(post(cloud, {**parameters, "PageSize": "2"})) == (400, "SignatureDoesNotMatch")


def test_replay(cloud: LocalCloud) -> None:
    parameters = signed(cloud, "DescribeRegions")
    assert post(cloud, parameters).status_code == 200
    assert error(post(cloud, parameters)) == (400, "SignatureNonceUsed")


def test_bad_requests_in_the_newer_style(cloud: LocalCloud) -> None:
    headers = {"x-acs-action": "DescribeRegions", "x-acs-version": ECS}
    assert error(httpx.post(cloud.url, headers=headers, trust_env=False)) == (400, "IncompleteSignature")
    wrong = acs3(cloud, "DescribeRegions", b"a=b", "application/x-www-form-urlencoded", x_acs_content_sha256="0" * 64)
    assert error(wrong) == (400, "SignatureDoesNotMatch")
    assert error(acs3(cloud, "DescribeRegions", x_acs_date=stamp(-3600))) == (400, "InvalidTimeStamp.Expired")
    for body in (b"[1]", b"{", b"\xff\xfe", b"[" * 100_000):
        assert error(acs3(cloud, "DescribeRegions", body, "application/json")) == (400, "InvalidParameter")
    assert error(acs3(cloud, "DescribeRegions", b"x", "text/plain")) == (400, "InvalidParameter")


def test_large_bodies_are_refused_without_eating_memory(cloud: LocalCloud) -> None:
    def memory() -> int:
        text = Path(f"/proc/{cloud.record.pid}/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0])

    before = memory()
    for _ in range(3):
        response = httpx.post(cloud.url, content=b"a=" + b"x" * 10_000_000, trust_env=False, timeout=30)
        assert error(response) == (413, "RequestEntityTooLarge")
    assert memory() - before < 20_000, "KiB"
    assert post(cloud, signed(cloud, "DescribeRegions")).status_code == 200


def test_garbage_on_the_wire_ends_the_connection_only(cloud: LocalCloud) -> None:
    host, _, port = cloud.endpoint.rpartition(":")
    for garbage in (b"\x00" * 100, b"GET\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b""):
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
    assert post(cloud, signed(cloud, "DescribeRegions")).status_code == 200


def test_many_parameters(cloud: LocalCloud) -> None:
    flood = {f"InstanceId.{number}": "x" for number in range(5000)}
    assert error(post(cloud, signed(cloud, "DescribeInstanceStatus", **flood))) == (400, "InvalidParameter")


# -- temporary credentials -----------------------------------------------------------------------------------------


def test_sessions_of_roles(cloud: LocalCloud) -> None:
    ram = {"Version": "2015-05-01"}
    trust = json.dumps({"Version": "1", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole"}]})
    assert post(
        cloud, signed(cloud, "CreateRole", RoleName="Reader", AssumeRolePolicyDocument=trust, **ram)
    ).status_code == 200  # fmt: skip
    attachment = {"RoleName": "Reader", "PolicyType": "System", "PolicyName": "AliyunECSReadOnlyAccess"}
    assert post(cloud, signed(cloud, "AttachPolicyToRole", **attachment, **ram)).status_code == 200
    arn = f"acs:ram::{cloud.record.account_id}:role/reader"
    sts = {"Version": "2015-04-01"}
    answer = post(cloud, signed(cloud, "AssumeRole", RoleArn=arn, RoleSessionName="me", **sts)).json()
    made = answer["Credentials"]

    def as_role(action: str, **changes: str | None) -> httpx.Response:
        base = {
            "AccessKeyId": made["AccessKeyId"],
            "_secret": made["AccessKeySecret"],
            "SecurityToken": made["SecurityToken"],
        }
        return post(cloud, signed(cloud, action, **{**base, **changes}))

    identity = as_role("GetCallerIdentity", **sts).json()
    assert identity["Arn"] == f"acs:ram::{cloud.record.account_id}:assumed-role/Reader/me"
    assert error(as_role("AssumeRole", RoleArn=arn, RoleSessionName="x", **sts)) == (403, "NoPermission")
    assert as_role("DescribeInstances").status_code == 200
    refused = as_role("CreateKeyPair", KeyPairName="k1")
    assert error(refused) == (403, "Forbidden.RAM")
    assert refused.json()["AccessDeniedDetail"]["AuthAction"] == "ecs:CreateKeyPair"
    assert error(as_role("DescribeInstances", SecurityToken="x")) == (
        400, "InvalidSecurityToken.MismatchWithAccessKey",
    )  # fmt: skip
    assert error(as_role("DescribeInstances", SecurityToken=None)) == (400, "MissingSecurityToken")
    cloud.expire_credentials()
    assert error(as_role("DescribeInstances")) == (400, "InvalidSecurityToken.Expired")
    post(cloud, signed(cloud, "DetachPolicyFromRole", **attachment, **ram))
    assert post(cloud, signed(cloud, "DeleteRole", RoleName="Reader", **ram)).status_code == 200


# -- the admin API -------------------------------------------------------------------------------------------------


def test_admin_api_wants_the_token(cloud: LocalCloud) -> None:
    for path in ("/_local/snapshot", "/_local/knobs", "/_local/calls", "/_local/metrics", "/_local/events"):
        assert httpx.get(cloud.url + path, trust_env=False).status_code == 401
        wrong = {"X-Local-Token": "x"}
        assert httpx.get(cloud.url + path, headers=wrong, trust_env=False).status_code == 401
    page = httpx.get(cloud.url, trust_env=False)
    assert page.status_code == 401
    assert cloud.record.admin_token not in page.text


def test_console_cookie_is_for_the_page_itself_only(cloud: LocalCloud) -> None:
    with httpx.Client(trust_env=False, follow_redirects=True) as browser:
        page = browser.get(cloud.console_url)
        assert page.status_code == 200
        assert cloud.record.admin_token not in page.text
        assert "http://" not in page.text.replace("http://www.w3.org", "")
        assert browser.get(cloud.url + "/_local/knobs").status_code == 200
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert browser.get(cloud.url + "/_local/knobs", headers=foreign).status_code == 401


def test_knobs_are_checked(cloud: LocalCloud) -> None:
    with pytest.raises(RefusedError, match="greater than or equal to 0"):
        cloud.set(describe_lag=-1)
    with pytest.raises(RefusedError, match="Extra inputs"):
        cloud.set(no_such_knob=1)
    with pytest.raises(RefusedError, match="greater than or equal to 0"):
        cloud.set_stock(-1)
    with pytest.raises(RefusedError, match="no instance"):
        cloud.vanish("i-none")
    with pytest.raises(RefusedError):
        cloud.advance_clock(-1)


def test_faults_come_and_go(cloud: LocalCloud) -> None:
    cloud.fail("DescribeZones", "ServiceUnavailable", status=503, count=2)
    expected = (503, "ServiceUnavailable")
    assert error(post(cloud, signed(cloud, "DescribeZones"))) == expected
    assert post(cloud, signed(cloud, "DescribeRegions")).status_code == 200
    assert error(post(cloud, signed(cloud, "DescribeZones"))) == expected
    assert post(cloud, signed(cloud, "DescribeZones")).status_code == 200


def test_a_lost_answer_and_a_retry_make_one_resource(cloud: LocalCloud) -> None:
    vpc = {"Version": "2016-04-28", "ClientToken": uuid.uuid4().hex, "CidrBlock": "10.0.0.0/16"}
    before = cloud.counts().get("vpc", 0)
    cloud.fail("CreateVpc", "InternalError", when="after")
    assert error(post(cloud, signed(cloud, "CreateVpc", **vpc))) == (500, "InternalError")
    made = post(cloud, signed(cloud, "CreateVpc", **vpc)).json()["VpcId"]
    assert cloud.counts()["vpc"] == before + 1
    post(cloud, signed(cloud, "DeleteVpc", VpcId=made, Version="2016-04-28"))


def test_throttling_clears_with_the_minute(cloud: LocalCloud) -> None:
    cloud.advance_clock(60 - cloud.now() % 60 + 1)
    cloud.set(throttle={"DescribeZones": 2})
    try:
        answers = [post(cloud, signed(cloud, "DescribeZones")) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert error(answers[2]) == (429, "Throttling.User")
        left = answers[2].headers["x-ratelimit-user-api"].partition("TimeLeft:")[2].partition(",")[0]
        assert 0 < int(left) <= 60_000, "milliseconds"
        cloud.advance_clock(60)
        assert post(cloud, signed(cloud, "DescribeZones")).status_code == 200
    finally:
        cloud.set(throttle={})


def test_latency(cloud: LocalCloud) -> None:
    cloud.set(latency={"DescribeZones": 0.3})
    try:
        start = time.monotonic()
        post(cloud, signed(cloud, "DescribeZones"))
        assert time.monotonic() - start >= 0.3
    finally:
        cloud.set(latency={})


def test_calls_are_logged_without_secrets(cloud: LocalCloud) -> None:
    since = cloud.calls()[-1]["number"] if cloud.calls() else 0
    post(cloud, signed(cloud, "RunInstances", UserData="c2VjcmV0", Password="hunter2", InstanceType="t"))
    (record,) = cloud.calls(since=since)
    assert (record["product"], record["action"]) == ("ecs", "RunInstances")
    assert record["parameters"]["InstanceType"] == "t"
    text = json.dumps(record)
    for secret in ("c2VjcmV0", "hunter2", cloud.record.access_key_id, "Signature"):
        assert secret not in text
    assert 'localcloud_api_calls_total{action="RunInstances"' in cloud.metrics()


def test_events_show_calls_as_they_happen(cloud: LocalCloud) -> None:
    headers = {"X-Local-Token": cloud.record.admin_token}
    with httpx.stream("GET", cloud.url + "/_local/events", headers=headers, trust_env=False, timeout=20) as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": calls"
        post(cloud, signed(cloud, "DescribeZones"))
        data = next(line for line in lines if line.startswith("data: "))
    assert json.loads(data.removeprefix("data: "))["action"] == "DescribeZones"


# -- the process ---------------------------------------------------------------------------------------------------


def test_state_survives_kill_9_at_any_moment(tmp_path: Path) -> None:
    cloud = launch.start(tmp_path, hosts=False)
    made: list[str] = []
    try:
        for round_ in range(3):
            for _ in range(5):
                answer = post(cloud, signed(cloud, "CreateKeyPair", KeyPairName=f"key-{len(made)}"))
                assert answer.status_code == 200
                made.append(f"key-{len(made)}")
            assert launch.stop(tmp_path, kill=True)
            assert LocalCloud.read(tmp_path) is None
            with pytest.raises(CannotRunError):
                cloud.counts()
            again = launch.start(tmp_path, hosts=False)
            assert (again.endpoint, again.record.access_key_id) == (cloud.endpoint, cloud.record.access_key_id)
            assert again.counts() == {"key_pair": 5 * (round_ + 1)}
            cloud = again
    finally:
        launch.stop(tmp_path)


def test_files_are_private_and_one_server_has_the_folder(tmp_path: Path) -> None:
    cloud = launch.start(tmp_path, hosts=False)
    try:
        for name in ("cloud.json", "cloud.db", "certificate.key", "server.log"):
            assert (tmp_path / name).stat().st_mode & 0o077 == 0
        assert launch.start(tmp_path, hosts=False).record.pid == cloud.record.pid
        assert launch.status(tmp_path).cloud is not None
        (tmp_path / "cloud.json").unlink()
        with pytest.raises(CannotRunError, match="another server runs"):
            launch.start(tmp_path, hosts=False)
        cloud.record.write(tmp_path)
    finally:
        assert launch.stop(tmp_path)
    assert not (tmp_path / "cloud.json").exists()
    assert launch.stop(tmp_path) is False


def test_a_stranger_with_the_recorded_pid_is_left_alone(tmp_path: Path) -> None:
    import subprocess
    import sys

    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        started = process_start(stranger.pid)
        assert started is not None
        values: dict[str, Any] = {
            "url": "http://127.0.0.1:1", "endpoint": "127.0.0.1:1", "pid": stranger.pid, "started": started,
            "access_key_id": "", "access_key_secret": "", "admin_token": "", "account_id": "", "region": "",
            "hosts": False, "trust_file": "",
        }  # fmt: skip
        Record(**values).write(tmp_path)
        assert launch.stop(tmp_path, kill=True) is False
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
