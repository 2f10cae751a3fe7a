"""SuspendProgram and ResumeFailProgram of slurm.conf: tell the daemon to look now. Standard library only, quick."""

from __future__ import annotations

import sys

from hpc.elastic.wire import hand_over


def main() -> int:
    """Hand over; exit code 0 when the daemon has it."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: hpc-suspend HOSTLIST\n")
        return 2
    return hand_over({"operation": "suspend", "nodes": sys.argv[1]})


if __name__ == "__main__":
    sys.exit(main())
