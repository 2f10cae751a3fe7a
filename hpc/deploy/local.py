"""The local cloud as a target of deployments: where it lives, how it is reached, how its stack keeps its secrets."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpc.paths import state_dir

if TYPE_CHECKING:
    from localcloud.api.client import LocalCloud

#: Name of the stack that only ever goes to the local cloud.
LOCAL_STACK = "local"

#: Where programs and providers find a local cloud, `host:port`.
ENDPOINT_VARIABLE = "HPC_LOCAL_ENDPOINT"


def cloud_dir() -> Path:
    """Folder of the local cloud: its database, its log, its hosts."""
    return state_dir() / "cloud"


def pulumi_dir() -> Path:
    """Folder of the Pulumi state of local stacks."""
    return state_dir() / "pulumi"


def backend() -> str:
    """Address of the state backend of local stacks; its folder is there afterwards."""
    folder = pulumi_dir() / "state"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return f"file://{folder}"


def running_cloud() -> LocalCloud | None:
    """The local cloud if it runs, else None."""
    from localcloud.api.client import LocalCloud

    return LocalCloud.read(cloud_dir())


def ensure_cloud(progress: Callable[[str], None], *, hosts: bool | None = None) -> LocalCloud:
    """The local cloud, started if need be.

    Args:
        progress: gets lines for the user.
        hosts: real hosts or API only; None takes hosts where the machine can have them, and says why where not.

    Raises:
        CannotRunError: it does not start, or hosts are asked for and cannot be had.
    """
    from localcloud.api.launch import start

    if running_cloud() is None:
        progress("Starting the local Alibaba Cloud")
    return start(cloud_dir(), hosts=hosts, progress=progress)


def cloud_environment(cloud: LocalCloud) -> Mapping[str, str]:
    """Variables by which the program, the SDKs and the sweep find the local cloud and its keys."""
    return {
        ENDPOINT_VARIABLE: cloud.endpoint,
        "ALIBABA_CLOUD_ACCESS_KEY_ID": cloud.record.access_key_id,
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET": cloud.record.access_key_secret,
        # The real provider revokes security group rules by HTTPS whatever its protocol setting says.
        "SSL_CERT_FILE": cloud.record.trust_file,
        # Without real hosts there is nothing that could be set up over SSH.
        "HPC_LOCAL_HOSTS": "yes" if cloud.record.hosts else "no",
    }


def passphrase() -> str:
    """Passphrase of the local stacks' secrets: made once, readable by the user only."""
    file = pulumi_dir() / "passphrase"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(secrets.token_urlsafe(32))
    return file.read_text(encoding="ascii")


def remove_cloud(progress: Callable[[str], None]) -> None:
    """Stop the local cloud and remove it whole, also what a crashed run left: hosts, networks, files, Pulumi state."""
    import shutil

    from localcloud.api.launch import stop

    progress("Stopping the local cloud")
    stop(cloud_dir())
    if os.geteuid() == 0:
        from localcloud.hosts.reset import reset

        progress("Removing hosts and networks")
        reset(cloud_dir(), data=True)
    for folder in (cloud_dir(), pulumi_dir()):
        shutil.rmtree(folder, ignore_errors=True)
