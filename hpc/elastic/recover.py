"""Let a pool that stopped buying buy again: `python -m hpc.elastic.recover POOL`, on the management node."""

from __future__ import annotations

import sys

from hpc.elastic.wire import hand_over


def main() -> int:
    """Hand over; exit code 0 when the daemon has it."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m hpc.elastic.recover POOL\n")
        return 2
    return hand_over({"operation": "recover", "pool": sys.argv[1]})


if __name__ == "__main__":
    sys.exit(main())
