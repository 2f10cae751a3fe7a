"""Speed and memory of the local cloud's API server with many instances, through real signed requests.

    python benchmarks/api_server.py [--instances 10000]

Prints percentiles in milliseconds and their ratio to the baseline: the round trip of an action that does nothing much
(DescribeRegions of VPC with the same client, the same signature and the same connection), measured in the same run.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from localcloud.api import launch, signature
from localcloud.api.client import LocalCloud

ECS, VPC = "2014-05-26", "2016-04-28"


class Api:
    """A client that keeps one connection and signs in version 1."""

    def __init__(self, cloud: LocalCloud) -> None:
        self._record = cloud.record
        self._connection = http.client.HTTPConnection(cloud.endpoint, timeout=60)

    def call(self, version: str, action: str, **parameters: Any) -> dict[str, Any]:
        flat = {
            "Action": action,
            "Version": version,
            "Format": "JSON",
            "RegionId": "cn-hangzhou",
            "AccessKeyId": self._record.access_key_id,
            "SignatureMethod": "HMAC-SHA1",
            "SignatureVersion": "1.0",
            "SignatureNonce": uuid.uuid4().hex,
            "Timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            **{name: str(value) for name, value in parameters.items()},
        }
        text = signature.string_to_sign_v1("POST", flat)
        flat["Signature"] = signature.sign_v1(self._record.access_key_secret, text)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/", urlencode(flat), headers)
        response = self._connection.getresponse()
        document: dict[str, Any] = json.loads(response.read())
        if response.status != 200:
            raise SystemExit(f"{action}: {document}")
        return document


def timed(count: int, action: Callable[[], object]) -> list[float]:
    """Durations of `count` calls in milliseconds."""
    result = []
    for _ in range(count):
        start = time.perf_counter()
        action()
        result.append((time.perf_counter() - start) * 1000)
    return result


def memory_mib(pid: int) -> float:
    """Resident memory of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"no such process: {pid}")


def report(name: str, values: list[float], baseline: float, bar: float | None = None) -> None:
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, round(len(ordered) * 0.99))]
    middle = statistics.median(values)
    verdict = "" if bar is None else f"   bar {bar:.0f} ms: {'ok' if p99 <= bar else 'MISSED'}"
    print(f"{name:<46} median {middle:7.2f}  p99 {p99:7.2f} ms  = {middle / baseline:5.1f} x baseline{verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=10_000)
    count = parser.parse_args().instances
    with tempfile.TemporaryDirectory(prefix="api-bench-") as folder:
        state = Path(folder)
        cloud = launch.start(state, hosts=False)
        try:
            measure(cloud, count)
        finally:
            launch.stop(state)


def measure(cloud: LocalCloud, count: int) -> None:
    api = Api(cloud)
    cloud.set(instances_per_minute=10**6)
    vpc = api.call(VPC, "CreateVpc", CidrBlock="10.0.0.0/8")["VpcId"]
    zone = "cn-hangzhou-j"
    vswitch = api.call(VPC, "CreateVSwitch", VpcId=vpc, ZoneId=zone, CidrBlock="10.0.0.0/16")["VSwitchId"]
    group = api.call(ECS, "CreateSecurityGroup", VpcId=vpc)["SecurityGroupId"]
    image = next(
        item["ImageId"]
        for item in api.call(ECS, "DescribeImages", PageSize=100)["Images"]["Image"]
        if item["Architecture"] == "x86_64"
    )
    empty = memory_mib(cloud.record.pid)
    base = timed(300, lambda: api.call(VPC, "DescribeRegions"))
    baseline = statistics.median(base)

    def run() -> None:
        api.call(
            ECS, "RunInstances", Amount=100, InstanceType="ecs.c8ae.4xlarge", ImageId=image,
            InstanceName="node[1,5]", SpotStrategy="SpotAsPriceGo", ClientToken=uuid.uuid4().hex,
            **{
                "NetworkInterface.1.InstanceType": "Primary",
                "NetworkInterface.1.VSwitchId": vswitch,
                "NetworkInterface.1.SecurityGroupIds.1": group,
                "NetworkInterface.1.NetworkInterfaceTrafficMode": "HighPerformance",
                "Tag.1.Key": "cluster", "Tag.1.Value": "bench",
                "Tag.2.Key": "pool", "Tag.2.Value": "mpi",
            },
        )  # fmt: skip

    launches = timed(count // 100, run)
    time.sleep(2.5)  # let the instances reach Running
    full = memory_mib(cloud.record.pid)
    tags = {"Tag.1.Key": "cluster", "Tag.1.Value": "bench"}
    token = ""
    tokens = [""]

    def walk() -> None:
        nonlocal token
        more = {"NextToken": token} if token else {}
        token = api.call(ECS, "DescribeInstances", MaxResults=100, **tags, **more)["NextToken"]
        tokens.append(token)

    pages = timed(max(count // 100, 100), walk)
    plain = timed(100, lambda: api.call(ECS, "DescribeInstances", PageSize=100, PageNumber=max(count // 200, 1)))
    some = api.call(ECS, "DescribeInstances", MaxResults=100)["Instances"]["Instance"]
    wanted = json.dumps([item["InstanceId"] for item in some])
    by_id = timed(100, lambda: api.call(ECS, "DescribeInstances", PageSize=100, InstanceIds=wanted))
    renew = {"AutoReleaseTime": datetime.fromtimestamp(time.time() + 7200, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    one = some[0]["InstanceId"]
    renewals = timed(100, lambda: api.call(ECS, "ModifyInstanceAutoReleaseTime", InstanceId=one, **renew))
    batches = [some[start : start + 50] for start in (0, 50)]
    left = iter(batches)

    def delete() -> None:
        ids = {f"InstanceId.{number}": item["InstanceId"] for number, item in enumerate(next(left), 1)}
        api.call(ECS, "DeleteInstances", Force="true", **ids)

    deletions = timed(len(batches), delete)
    print(f"{count} instances; load average of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    report("baseline: empty action, round trip", base, baseline)
    report("RunInstances of 100", launches, baseline, 50)
    report("DescribeInstances, page of 100 by tag and token", pages, baseline, 50)
    report("DescribeInstances, page of 100 in the middle", plain, baseline, 50)
    report("DescribeInstances, 100 ids", by_id, baseline, 50)
    report("ModifyInstanceAutoReleaseTime", renewals, baseline)
    report("DeleteInstances of 50", deletions, baseline)
    verdict = "ok" if full <= 300 else "MISSED"
    print(f"{'memory of the server':<46} empty {empty:7.1f}  full {full:7.1f} MiB   bar 300 MiB: {verdict}")


if __name__ == "__main__":
    main()
