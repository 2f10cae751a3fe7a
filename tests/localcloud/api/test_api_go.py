"""The official Go SDK against the local cloud, over HTTP and over TLS: the family of clients that the provider uses.

The tests themselves are in `go/`; they are compiled once and kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from direct_cloud import IMAGE
from test_api_protocol import post, signed

from hpc.engine.versions import new_enough
from hpc.paths import cache_dir
from localcloud.api.client import LocalCloud

SOURCE = Path(__file__).parent / "go"
WANTED = "1.26.0"
VPC = {"Version": "2016-04-28"}


def go_version(binary: str) -> str:
    try:
        done = subprocess.run([binary, "env", "GOVERSION"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().removeprefix("go")


def find_go() -> tuple[str, str]:
    """A new enough Go and its version; where there is none, the test is skipped."""
    for candidate in (shutil.which("go"), str(cache_dir() / "go" / "bin" / "go"), "/usr/local/go/bin/go"):
        if candidate and new_enough(version := go_version(candidate), WANTED):
            return candidate, version
    pytest.skip(f"no Go {WANTED} on PATH, in /usr/local/go or in the cache folder")


@pytest.fixture(scope="module")
def binary() -> Path:
    """The compiled tests: from the cache if nothing has changed since."""
    go, version = find_go()
    digest = hashlib.sha256(version.encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    home = cache_dir() / "go-conformance"
    target = home / digest.hexdigest()[:16] / "conformance.test"
    if target.is_file():
        return target
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    fetched = subprocess.run(
        [go, "mod", "download"], cwd=SOURCE, env=environment, capture_output=True, text=True, timeout=900
    )
    if fetched.returncode:
        pytest.skip(f"the Go modules cannot be had: {fetched.stderr.strip().splitlines()[-1:]}")
    shutil.rmtree(home, ignore_errors=True)
    target.parent.mkdir(parents=True)
    part = target.with_suffix(f".{os.getpid()}")
    built = subprocess.run(
        [go, "test", "-c", "-vet=off", "-o", str(part), "."],
        cwd=SOURCE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert built.returncode == 0, built.stderr
    part.rename(target)
    return target


@pytest.fixture(scope="module")
def network(cloud: LocalCloud) -> Iterator[dict[str, str]]:
    """What the tests launch into."""
    vpc = post(cloud, signed(cloud, "CreateVpc", CidrBlock="10.0.0.0/8", **VPC)).json()["VpcId"]
    inside = {"VpcId": vpc, "ZoneId": "cn-hangzhou-j", "CidrBlock": "10.9.0.0/16"}
    vswitch = post(cloud, signed(cloud, "CreateVSwitch", **inside, **VPC)).json()["VSwitchId"]
    group = post(cloud, signed(cloud, "CreateSecurityGroup", VpcId=vpc)).json()["SecurityGroupId"]
    yield {"VPC": vpc, "VSWITCH": vswitch, "GROUP": group, "IMAGE": IMAGE}
    for action, parameters in (
        ("DeleteSecurityGroup", {"SecurityGroupId": group}),
        ("DeleteVSwitch", {"VSwitchId": vswitch, **VPC}),
        ("DeleteVpc", {"VpcId": vpc, **VPC}),
    ):
        assert post(cloud, signed(cloud, action, **parameters)).status_code == 200


def run(binary: Path, cloud: LocalCloud, network: dict[str, str], test: str, protocol: str) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "SSL_CERT_FILE": cloud.record.trust_file,
        "ENDPOINT": cloud.endpoint,
        "PROTOCOL": protocol,
        "KEY_ID": cloud.record.access_key_id,
        "KEY_SECRET": cloud.record.access_key_secret,
        **network,
    }
    done = subprocess.run(
        [str(binary), "-test.v", "-test.timeout=120s", f"-test.run=^{test}$"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"--- PASS: {test} " in done.stdout, "the test did not run"


@pytest.mark.parametrize("protocol", ["http", "https"])
@pytest.mark.parametrize(
    "test", ["TestOffers", "TestInstances", "TestLaunchTemplates", "TestSecurityGroups", "TestErrors"]
)
def test_go_sdk(binary: Path, cloud: LocalCloud, network: dict[str, str], test: str, protocol: str) -> None:
    since = cloud.calls()[-1]["number"]
    run(binary, cloud, network, test, protocol)
    assert cloud.calls(since=since), "the calls went to this cloud"
    assert cloud.counts().get("instance", 0) == 0


@pytest.mark.parametrize(
    ("test", "knobs"),
    [
        ("TestNoStock", {"stock": [{"count": 2}]}),
        ("TestQuota", {"quotas": {"vcpus": 16}}),
        ("TestThrottling", {"throttle": {"DescribeZones": 1}}),
    ],
)
def test_go_sdk_in_need(
    binary: Path, cloud: LocalCloud, network: dict[str, str], test: str, knobs: dict[str, object]
) -> None:
    cloud.advance_clock(60 - cloud.now() % 60 + 1)
    before = cloud.knobs()
    cloud.set(**knobs)
    clock = threading.Timer(2.0, cloud.advance_clock, [60])
    try:
        if "throttle" in knobs:
            clock.start()
        run(binary, cloud, network, test, "http")
    finally:
        clock.cancel()
        cloud.set(**{name: before[name] for name in knobs})


def test_every_go_test_is_run() -> None:
    """A test that is added to the Go package has to be named above, too."""
    source = (SOURCE / "conformance_test.go").read_text()
    here = Path(__file__).read_text()
    tests = [
        line.removeprefix("func ").partition("(")[0] for line in source.splitlines() if line.startswith("func Test")
    ]
    assert len(tests) == 8
    assert [name for name in tests if f'"{name}"' not in here] == []
