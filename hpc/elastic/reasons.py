"""Reasons as people read them in `sinfo -R`: one printable line of bounded length."""

from __future__ import annotations

import sys

#: Most characters; Slurm's lists show fewer.
REASON_LENGTH = 200


def printable(text: str) -> str:
    """The first line of a text, without what a terminal or a command could take for something else."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return "".join(sign for sign in line if sign.isprintable() and sign not in "\"'`\\").strip()[:REASON_LENGTH]


def until_recovered(pool: str, why: str) -> str:
    """Why nothing is bought for a pool, and the command that ends it."""
    command = f"{sys.executable} -I -m hpc.elastic.recover {pool}"
    return f"pool {pool} buys nothing: {printable(why)}; mend it, then run as root: {command}"
