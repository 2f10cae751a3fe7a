"""The local cloud as a target of deployments: where it lives, how it is reached, how its stack keeps its secrets."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpc.notes import Note
from hpc.paths import PROJECT_ROOT, state_dir

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


def plain_environment(cloud: LocalCloud, progress: Callable[[str], None]) -> Mapping[str, str]:
    """Variables with which plain `pulumi` deploys to the local cloud what `hpc` does; PATH is not among them.

    The plugins and the language host are got where they can be; what is missing is said. The stack is made, since
    plain `pulumi up` makes none.

    Args:
        cloud: the local cloud.
        progress: gets lines for the user.
    """
    import sys

    from hpc.engine.cli import find_cli
    from hpc.engine.language import ensure_language_host, find_uv
    from hpc.engine.plugins import ensure_plugins, pulumi_home

    cli = find_cli()
    missing = [] if cli else ["the Pulumi CLI (get it with `python -m hpc.engine path`)"]
    missing += (
        [f"the plugin {plugin.name} ({plugin.remedy})" for plugin in ensure_plugins(cli, progress) if not plugin.path]
        if cli
        else []
    )
    if ensure_language_host(progress) is None:
        missing.append("the Python language host (it comes with an installed CLI)")
    if find_uv() is None:
        missing.append("uv (https://docs.astral.sh/uv/)")
    if missing:
        progress(Note(f"plain `pulumi` lacks {', '.join(missing)}; `hpc up local` does without"))
    if cli and not list((pulumi_dir() / "state").glob(f".pulumi/stacks/*/{LOCAL_STACK}.json")):
        from hpc.engine.project import Deployment, Workspace

        file, folder = PROJECT_ROOT / f"Pulumi.{LOCAL_STACK}.yaml", pulumi_dir() / "project"
        Deployment(Workspace(LOCAL_STACK, file, cli, folder=folder, backend=backend(), passphrase=passphrase()))
    return {
        **cloud_environment(cloud),
        "PULUMI_BACKEND_URL": backend(),
        "PULUMI_CONFIG_PASSPHRASE": passphrase(),
        "PULUMI_HOME": str(pulumi_home()),
        "HPC_PYTHON": sys.executable,
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
