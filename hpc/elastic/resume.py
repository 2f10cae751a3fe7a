"""ResumeProgram of slurm.conf: hand the hostlist and SLURM_RESUME_FILE to the daemon. Standard library only, quick."""

from __future__ import annotations

import json
import os
import sys

from hpc.elastic.wire import hand_over


def _jobs() -> list[dict[str, object]]:
    """What SLURM_RESUME_FILE says of the jobs that the nodes are for; [] where there is no such file."""
    path = os.environ.get("SLURM_RESUME_FILE")
    if not path:
        return []
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  pathlib costs start-up time
            return list(json.load(file).get("jobs", []))
    except (OSError, ValueError, AttributeError):
        return []


def main() -> int:
    """Hand over; exit code 0 when the daemon has it."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: hpc-resume HOSTLIST\n")
        return 2
    return hand_over({"operation": "resume", "nodes": sys.argv[1], "jobs": _jobs()})


if __name__ == "__main__":
    sys.exit(main())
