"""How long the program takes to register a cluster, without an engine, and what its imports cost.

Bars: a cluster with 100 pools within 1.5 s, growth linear; baselines are printed beside.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

BAR_SECONDS = 1.5
POOLS = (1, 10, 50, 100)
ROUNDS = 5

#: What is timed in a fresh interpreter: the floor, the SDK as a program would import it in one go, and the program.
IMPORTS = {
    "interpreter": "pass",
    "pulumi": "import pulumi",
    "pulumi, pulumi_alicloud (lazy), pulumi_command": "import pulumi, pulumi_alicloud, pulumi_command",
    "before: the four used packages of the SDK (ecs, vpc, nas, ram)": (
        "import pulumi\nfrom pulumi_alicloud import ecs, nas, ram, vpc\n"
        "ecs.Instance, vpc.Network, nas.FileSystem, ram.Role\nfrom pulumi_command import local\nlocal.Command"
    ),
    "after: the used modules of those packages only": (
        "from components.sdk import ecs, nas, ram, vpc\nfrom pulumi_command import local\nlocal.Command"
    ),
    "components.cluster (before the first resource)": "import components.cluster",
}


def import_times() -> None:
    print(f"Imports, fresh interpreter, median of {ROUNDS}:")
    floor = 0.0
    for name, code in IMPORTS.items():
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
            times.append(time.perf_counter() - start)
        median = statistics.median(times)
        floor = floor or median
        print(f"  {median - floor:6.3f} s over the floor of {floor:.3f} s  {name}")


def registration_times() -> None:
    from components.cluster import Cluster, ClusterArgs
    from components.recording import record
    from hpc.catalog import load_catalog
    from hpc.plan import catalog_invokes
    from hpc.spec.cluster import ClusterSpec

    catalog = load_catalog()
    invokes = catalog_invokes(catalog)

    def register(pools: int) -> tuple[float, int]:
        spec = ClusterSpec.model_validate(
            {
                "name": "bench",
                "region": "cn-hangzhou",
                "zones": ["cn-hangzhou-j", "cn-hangzhou-k"],
                "network": {"ssh_from": ["203.0.113.0/24"]},
                "pools": [
                    {"name": f"p{number}", "instance_types": ["ecs.c8ae.4xlarge"], "max": 8} for number in range(pools)
                ],
            }
        )
        start = time.perf_counter()
        recording = record(lambda: Cluster(spec.name, ClusterArgs(spec, catalog)) and None, invokes=invokes)
        return time.perf_counter() - start, len(recording.resources)

    register(1)  # loads the SDK
    print(f"Registration, imports done, median of {ROUNDS}:")
    first = 0.0
    for pools in POOLS:
        done = [register(pools) for _ in range(ROUNDS)]
        median = statistics.median(seconds for seconds, _ in done)
        first = first or median
        each = (median - first) / max(1, pools - POOLS[0])
        mark = "" if pools != POOLS[-1] else f"  bar {BAR_SECONDS} s: {'met' if median <= BAR_SECONDS else 'MISSED'}"
        print(
            f"  {pools:4} pools {done[0][1]:5} resources {median:7.3f} s"
            f"  ({each * 1000:5.2f} ms for each further pool){mark}"
        )


if __name__ == "__main__":
    import_times()
    registration_times()
