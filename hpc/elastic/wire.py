"""How Slurm's two programs and the daemon talk: one line of JSON each way over a Unix socket. Standard library only."""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

#: Where the daemon listens (RuntimeDirectory of its unit).
SOCKET = os.environ.get("HPC_ELASTIC_SOCKET", "/run/hpc-elastic/socket")

#: Longest message in bytes: SLURM_RESUME_FILE of a full cluster has some MB.
LIMIT = 64 * 1024 * 1024

_TIMEOUT_S = 10


def send(message: dict[str, Any], path: str = SOCKET) -> dict[str, Any]:
    """Hand a message to the daemon and take its answer.

    Raises:
        OSError: the daemon does not listen, or does not answer in time.
        ValueError: what it answers is not JSON.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(path)
        connection.sendall(json.dumps(message).encode() + b"\n")
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    found = json.loads(answer)
    if not isinstance(found, dict):
        raise ValueError("the answer is not an object")
    return found


def hand_over(message: dict[str, Any]) -> int:
    """Send a message and say in one line what went wrong, if anything; the exit code for Slurm."""
    try:
        answer = send(message)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"HPC931: the elastic daemon does not answer ({error}): systemctl status hpc-elastic\n")
        return 1
    if not answer.get("ok"):
        sys.stderr.write(f"HPC932: the elastic daemon refused: {answer.get('error')}\n")
        return 1
    return 0
