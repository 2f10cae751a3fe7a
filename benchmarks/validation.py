"""How long the validation of a stack file with 50 pools takes, beside the plain parse of its YAML.

Bar: 0.2 s from the file to all findings, price caps left out. Baseline of the same run: `yaml.safe_load`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from hpc.catalog import load_catalog
from hpc.spec.load import load_stack_file, require
from hpc.spec.rules import check

BAR_SECONDS = 0.2
POOLS = (1, 10, 50, 100)
ROUNDS = 15


def stack(pools: int) -> str:
    """A stack file with many settings given in every pool."""
    cluster = {
        "name": "bench",
        "region": "cn-hangzhou",
        "zones": ["cn-hangzhou-j", "cn-hangzhou-k"],
        "network": {"cidr": "10.0.0.0/8", "ssh_from": ["203.0.113.0/24"]},
        "storage": [{"mount": "/home"}, {"mount": "/scratch", "kind": "extreme", "capacity_gib": 1000}],
        "pools": [
            {
                "name": f"pool-{number}",
                "instance_types": ["ecs.c8ae.16xlarge", "ecs.c8a.16xlarge"],
                "charge": "spot-then-payg",
                "spot_price_limit": 1.5,
                "max": 9,
                "idle": "5m",
                "max_lifetime": "24h",
                "system_disk": {"size_gib": 60},
                "tags": {"project": f"p{number}"},
            }
            for number in range(pools)
        ],
        "usage": {f"pool-{number}": {"node_hours_per_month": 100} for number in range(pools)},
        "quota": {"payg_vcpus": 10**6, "spot_vcpus": 10**6},
    }
    return yaml.safe_dump({"config": {"alicloud:region": "cn-hangzhou", "hpc:cluster": cluster}})


def median_seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """First call, and median of the later ones."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times[0], statistics.median(times[1:])


def main() -> None:
    print("Seconds; the ratio is to yaml.safe_load")
    print(f"{'pools':>5} {'first':>9} {'median':>9} {'yaml':>9} {'C yaml':>9} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for pools in POOLS:
            path = Path(folder) / "Pulumi.bench.yaml"
            text = stack(pools)
            path.write_text(text)

            def validate(path: Path = path) -> None:
                loaded = load_stack_file(path)
                assert loaded.spec is not None
                require(loaded, loaded.relevant(check(loaded.spec, load_catalog())))

            first, median = median_seconds(validate)
            _, plain = median_seconds(lambda text=text: yaml.safe_load(text))  # type: ignore[misc]
            _, fast = median_seconds(lambda text=text: yaml.load(text, Loader=yaml.CSafeLoader))  # type: ignore[misc]
            print(f"{pools:5} {first:9.4f} {median:9.4f} {plain:9.4f} {fast:9.4f} {median / plain:6.2f}x")
            if pools == 50:
                verdict = "within" if max(first, median) < BAR_SECONDS else "ABOVE"
                print(f"      50 pools: {verdict} the bar of {BAR_SECONDS} s")


if __name__ == "__main__":
    main()
