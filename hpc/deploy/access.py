"""Getting onto the hosts of a cluster that is up, with the key that its state holds."""

from __future__ import annotations

import os
from pathlib import Path

from hpc.deploy.session import Session
from hpc.errors import CannotRunError
from hpc.paths import state_dir


def key_file(session: Session) -> Path:
    """The cluster's private key as a file that only the user can read; written anew each time.

    Raises:
        CannotRunError: HPC722, the cluster is not up.
    """
    key = session.deployment.outputs().get("ssh_private_key")
    if not key:
        raise CannotRunError(
            f"{session.stack} is not up, so it has no key", code="HPC722", fix=f"run `hpc up {session.stack}` first"
        )
    file = state_dir() / "keys" / session.stack
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = file.with_name(f".{file.name}-{os.getpid()}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as out:
        out.write(key if key.endswith("\n") else key + "\n")
    part.rename(file)
    return file


def ssh_command(session: Session, *, host: str = "", command: list[str]) -> list[str]:
    """The `ssh` call that reaches a host of the cluster.

    Args:
        session: an open session of a cluster that is up.
        host: a login node by default; another host is reached through the first login node.
        command: what to run there; a shell where empty.

    Raises:
        CannotRunError: HPC722, the cluster is not up; HPC723, it has no login node to go through.
    """
    outputs = session.deployment.outputs()
    key = key_file(session)
    login = outputs.get("login") or []
    if not login:
        raise CannotRunError(
            "the cluster has no login node", code="HPC723", fix="set login.count to 1 or more, or use your own VPN"
        )
    user = str(outputs["ssh"]).removeprefix("ssh ").split("@")[0]
    known = state_dir() / "keys" / f"{session.stack}.known_hosts"
    if session.cloud is not None:
        known.unlink(missing_ok=True)  # hosts of the local cloud come and go under the same addresses
    options = [
        "-i",
        str(key),
        "-o",
        "IdentitiesOnly=yes",
        "-o",
        f"UserKnownHostsFile={known}",
        "-o",
        "StrictHostKeyChecking=accept-new",
        "-o",
        "LogLevel=ERROR",
    ]
    if not host:
        return ["ssh", *options, f"{user}@{login[0]}", *command]
    jump = " ".join(["ssh", *options, "-W", "%h:%p", f"{user}@{login[0]}"])
    return ["ssh", *options, "-o", f"ProxyCommand={jump}", f"{user}@{host}", *command]
