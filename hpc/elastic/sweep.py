"""Delete all compute instances of a cluster by their tag: `python -m hpc.elastic.sweep --cluster NAME --region REGION`.

It needs no living management node. Credentials come from the environment; without one the SDK's own chain is asked.
"""

from __future__ import annotations

import argparse
import sys
import time

from hpc.elastic.ecs import Cloud, CloudError, Connection

#: How long deleted instances may take to be gone, s.
PATIENCE_S = 300


def sweep(cloud: Cloud, patience: float = PATIENCE_S) -> int:
    """Delete until none is left, also those that start meanwhile; how many were deleted.

    Raises:
        CloudError: the cloud refuses.
        TimeoutError: some are still there after `patience` s.
    """
    deadline = time.monotonic() + patience
    seen: set[str] = set()
    while found := cloud.instances():
        living = [instance.id for instance in found]
        if fresh := [instance_id for instance_id in living if instance_id not in seen]:
            cloud.delete(fresh)
            seen.update(fresh)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(living)} instances are still there after {patience:.0f} s: {living[:5]}")
        time.sleep(1)
    return len(seen)


def main() -> int:
    """Run it; exit code 0 when none is left, 2 when that could not be reached."""
    parser = argparse.ArgumentParser(prog="hpc.elastic.sweep", description="Delete a cluster's compute instances.")
    parser.add_argument("--cluster", required=True, help="name of the cluster")
    parser.add_argument("--region", required=True, help="region id")
    parser.add_argument("--endpoint", help="HOST:PORT of a local cloud (plain HTTP)")
    asked = parser.parse_args()
    protocol = "http" if asked.endpoint else "https"
    try:
        count = sweep(Cloud(Connection(asked.region, asked.endpoint, protocol), asked.cluster))
    except (CloudError, TimeoutError) as error:
        sys.stderr.write(f"HPC930: compute nodes of {asked.cluster} could not be released: {error}\n")
        return 2
    sys.stdout.write(f"{count} compute nodes of {asked.cluster} released\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
