"""Speed and memory of the local cloud's API server with many instances, through real signed requests.

    python benchmarks/api_server.py [--instances 10000] [--runs 3]

Prints percentiles in milliseconds and their ratio to the baseline: the round trip of an action that does nothing much
(DescribeRegions of VPC with the same client, the same signature and the same connection), measured in the same run.
Each run starts with an empty cloud. What is shown is the run with the lowest 99th percentile, as other work on the
machine only ever adds time; the load average of each run says how much of that there was, and the processor time of
the server for one call does not depend on it.
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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Timing:
    """Durations of calls, and the processor time that the server took for one of them on average, milliseconds."""

    values: list[float]
    processor: float


def timed(pid: int, count: int, action: Callable[[], object]) -> Timing:
    """Time `count` calls to the server with this process id."""
    result = []
    before = processor_ms(pid)
    for _ in range(count):
        start = time.perf_counter()
        action()
        result.append((time.perf_counter() - start) * 1000)
    return Timing(result, (processor_ms(pid) - before) / count)


def processor_ms(pid: int) -> float:
    """Processor time of a process so far in milliseconds (the system counts in steps of 10)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Resident memory of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"no such process: {pid}")


@dataclass(frozen=True)
class Measure:
    """What one kind of call took in one run, milliseconds; `bar` is what its 99th percentile may be at most."""

    name: str
    timing: Timing
    baseline: float
    bar: float | None = None

    @property
    def p99(self) -> float:
        """99th percentile."""
        ordered = sorted(self.timing.values)
        return ordered[min(len(ordered) - 1, round(len(ordered) * 0.99))]

    def line(self) -> str:
        """One line of the report."""
        middle = statistics.median(self.timing.values)
        verdict = "" if self.bar is None else f"   bar {self.bar:.0f} ms: {'ok' if self.p99 <= self.bar else 'MISSED'}"
        return (
            f"{self.name:<47} median {middle:6.2f}  p99 {self.p99:6.2f} ms  = {middle / self.baseline:5.1f} x baseline"
            f"  server's processor {self.timing.processor:5.1f} ms{verdict}"
        )


@dataclass(frozen=True)
class Run:
    """One run: what was timed, and the memory of the server with no instances and with all of them, MiB."""

    measures: list[Measure]
    empty: float
    full: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    runs: list[Run] = []
    for number in range(1, args.runs + 1):
        with tempfile.TemporaryDirectory(prefix="api-bench-") as folder:
            state = Path(folder)
            cloud = launch.start(state, hosts=False)
            try:
                runs.append(measure(cloud, args.instances))
            finally:
                launch.stop(state)
        loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
        print(f"run {number}: load average (1, 5, 15 minutes) {loads} on {os.cpu_count()} processors")
    print(f"{args.instances} instances; the best of {args.runs} runs")
    for place in range(len(runs[0].measures)):
        print(min((run.measures[place] for run in runs), key=lambda measure: measure.p99).line())
    empty, full = max(run.empty for run in runs), max(run.full for run in runs)
    verdict = "ok" if full <= 300 else "MISSED"
    print(f"{'memory of the server (the largest)':<47} empty {empty:7.1f}  full {full:7.1f} MiB  bar 300: {verdict}")


def measure(cloud: LocalCloud, count: int) -> Run:
    api = Api(cloud)
    pid = cloud.record.pid
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
    empty = memory_mib(pid)
    base = timed(pid, 300, lambda: api.call(VPC, "DescribeRegions"))
    baseline = statistics.median(base.values)

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

    launches = timed(pid, count // 100, run)
    time.sleep(2.5)  # let the instances reach Running
    full = memory_mib(pid)
    tags = {"Tag.1.Key": "cluster", "Tag.1.Value": "bench"}
    token = ""
    tokens = [""]

    def walk() -> None:
        nonlocal token
        more = {"NextToken": token} if token else {}
        token = api.call(ECS, "DescribeInstances", MaxResults=100, **tags, **more)["NextToken"]
        tokens.append(token)

    pages = timed(pid, max(count // 100, 100), walk)
    plain = timed(pid, 100, lambda: api.call(ECS, "DescribeInstances", PageSize=100, PageNumber=max(count // 200, 1)))
    some = api.call(ECS, "DescribeInstances", MaxResults=100)["Instances"]["Instance"]
    wanted = json.dumps([item["InstanceId"] for item in some])
    by_id = timed(pid, 100, lambda: api.call(ECS, "DescribeInstances", PageSize=100, InstanceIds=wanted))
    renew = {"AutoReleaseTime": datetime.fromtimestamp(time.time() + 7200, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    one = some[0]["InstanceId"]
    renewals = timed(pid, 100, lambda: api.call(ECS, "ModifyInstanceAutoReleaseTime", InstanceId=one, **renew))
    batches = [some[start : start + 50] for start in (0, 50)]
    left = iter(batches)

    def delete() -> None:
        ids = {f"InstanceId.{number}": item["InstanceId"] for number, item in enumerate(next(left), 1)}
        api.call(ECS, "DeleteInstances", Force="true", **ids)

    deletions = timed(pid, len(batches), delete)
    timings: list[tuple[str, Timing, float | None]] = [
        ("baseline: empty action, round trip", base, None),
        ("RunInstances of 100", launches, 50),
        ("DescribeInstances, page of 100 by tag and token", pages, 50),
        ("DescribeInstances, page of 100 in the middle", plain, 50),
        ("DescribeInstances, 100 ids", by_id, 50),
        ("ModifyInstanceAutoReleaseTime", renewals, None),
        ("DeleteInstances of 50", deletions, None),
    ]
    return Run([Measure(name, timing, baseline, bar) for name, timing, bar in timings], empty, full)


if __name__ == "__main__":
    main()
