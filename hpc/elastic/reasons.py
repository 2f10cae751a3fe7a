"""Reasons as people read them in `sinfo -R`: one printable line of bounded length."""

from __future__ import annotations

#: Most characters; Slurm's lists show fewer.
REASON_LENGTH = 200


def printable(text: str) -> str:
    """The first line of a text, without what a terminal or a command could take for something else."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return "".join(sign for sign in line if sign.isprintable() and sign not in "\"'`\\").strip()[:REASON_LENGTH]
