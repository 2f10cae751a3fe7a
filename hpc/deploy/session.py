"""An open stack with everything that a run of it needs."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpc.checks import Checked, check_stack_file
from hpc.deploy.local import (
    ENDPOINT_VARIABLE,
    LOCAL_STACK,
    backend,
    cloud_environment,
    ensure_cloud,
    passphrase,
    pulumi_dir,
)
from hpc.deploy.providers import providers
from hpc.engine.cli import ensure_cli
from hpc.engine.project import Deployment, OnEvent, Workspace
from hpc.errors import RefusedError
from hpc.findings import FindingsError, has_errors
from hpc.paths import PROJECT_ROOT

if TYPE_CHECKING:
    from hpc.elastic.ecs import Connection
    from localcloud.api.client import LocalCloud


@dataclass(frozen=True)
class Session:
    """A stack that is ready to run.

    Attributes:
        stack: its name.
        checked: the cluster, its price and the findings.
        deployment: runs it.
        cloud: the local cloud it goes to, or None for the real one.
    """

    stack: str
    checked: Checked
    deployment: Deployment
    cloud: LocalCloud | None

    def connection(self) -> Connection:
        """How the stack's cloud is reached by the SDKs.

        Raises:
            RefusedError: HPC726, the stack file is too broken to name a region.
        """
        from hpc.elastic.ecs import Connection

        spec = self.checked.spec
        if spec is None:
            raise RefusedError(
                "the stack file does not say which region it is for", code="HPC726", fix="mend what `hpc validate` says"
            )
        os.environ.update(self.deployment.workspace.environment)  # the SDKs take the keys from there
        endpoint = os.environ.get(ENDPOINT_VARIABLE)
        return Connection(spec.region, endpoint, "http" if endpoint else "https")


def stack_name(file: Path) -> str:
    """Name of the stack that a file configures: `dev` for `Pulumi.dev.yaml`."""
    name = file.name
    return name.removeprefix("Pulumi.").removesuffix(".yaml") if name.startswith("Pulumi.") else file.stem


def _project_folder(stack: str, file: Path, *, redirected: bool) -> Path:
    """Folder of the Pulumi project: the repository for its own stack files, else a private copy."""
    if stack == LOCAL_STACK:
        return pulumi_dir() / "project"
    folder = file.resolve().parent
    if folder == PROJECT_ROOT and not redirected:
        return PROJECT_ROOT
    if file.name != f"Pulumi.{stack}.yaml":
        raise RefusedError(
            f"{file.name} is no name of a stack that can be deployed",
            code="HPC729",
            fix=f"call it Pulumi.{stack}.yaml, by which the engine finds it",
        )
    # The copy keeps the salt of the passphrase, which belongs to one state backend.
    key = f"{folder}\n{os.environ.get('PULUMI_BACKEND_URL', '')}"
    return pulumi_dir().resolve() / "projects" / hashlib.sha256(key.encode()).hexdigest()[:16]


@contextmanager
def open_session(
    file: Path,
    *,
    progress: Callable[[str], None],
    on_event: OnEvent = lambda event: None,
    hosts: bool | None = None,
    check: bool = True,
) -> Iterator[Session]:
    """Check a stack, get the engine and the plugins, start the local cloud where it is for it, open the stack.

    Args:
        file: the stack file.
        progress: gets lines for the user.
        on_event: gets the engine's events.
        hosts: for the local cloud: real hosts or API only; None takes hosts where the machine can have them.
        check: refuse a stack with errors; destroying works without.

    Raises:
        FindingsError: the stack is refused.
        HpcError: something that is needed cannot be had.
    """
    checked = check_stack_file(file)
    if check and has_errors(checked.findings):
        raise FindingsError(checked.findings)
    stack = stack_name(file)
    local = stack == LOCAL_STACK
    cli = ensure_cli(progress)
    cloud = ensure_cloud(progress, hosts=hosts) if local else None
    environment: Mapping[str, str] = cloud_environment(cloud) if cloud else {}
    environment = {"HPC_PYTHON": sys.executable, **environment}  # commands of the program run in this Python
    redirected = local or ENDPOINT_VARIABLE in os.environ  # any stack may be tried out in a local cloud
    with providers(cli, environment, local=redirected, progress=progress) as ports:
        workspace = Workspace(
            stack=stack,
            stack_file=file,
            cli=cli,
            folder=_project_folder(stack, file, redirected=redirected),
            # The engine writes the salt of a passphrase into the stack file; one that is tried out stays as it is.
            config_folder=None if redirected else file.resolve().parent,
            backend=backend() if local else None,
            passphrase=passphrase() if local else None,
            environment=environment,
            debug_providers=ports,
        )
        yield Session(stack, checked, Deployment(workspace, on_event, progress), cloud)
