"""Running the project's own program in the engine: preview, up, refresh, destroy of one stack.

The program runs in this process (Automation API, inline), so no Python language host is needed. The same folder runs
with plain `pulumi up` where the language host is installed.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hpc.engine.interrupt import forwarded, launcher
from hpc.engine.locks import end_holders
from hpc.engine.plugins import launcher_dir, pulumi_home
from hpc.engine.results import EventFolder, RunResult
from hpc.errors import CannotRunError, RefusedError
from hpc.notes import Note
from hpc.paths import PROJECT_ROOT

if TYPE_CHECKING:
    from pulumi.automation import Stack
    from pulumi.automation.events import EngineEvent

OnEvent = Callable[["EngineEvent"], None]

#: A state in a folder is written in place: whoever reads it in that moment finds half of it. So the engine is asked
#: again, at most this often and this far apart (s).
_READS, _BETWEEN_READS_S = 10, 0.5

#: What the engine says of a file that ends too early.
_HALF = ("EOF", "unexpected end of JSON input")

T = TypeVar("T")

#: Files of the Pulumi project that a private workspace gets a copy of.
_PROJECT_FILE = "Pulumi.yaml"


@dataclass(frozen=True)
class Workspace:
    """Where and how the engine runs for one stack.

    Attributes:
        stack: name of the stack.
        stack_file: its configuration.
        cli: the Pulumi CLI.
        program: the Python file to run.
        folder: folder of the Pulumi project; the project's own, or a private copy (then the engine writes its
            encryption salt there and not into the repository).
        backend: state backend URL; None leaves it to the user's login.
        passphrase: of the stack's secrets; None leaves it to the user's environment.
        environment: further variables for the engine and the program.
        debug_providers: ports of providers to attach to instead of plugins, by name.
        config_folder: where the engine reads and writes the stack file; None for a private copy of it.
    """

    stack: str
    stack_file: Path
    cli: Path
    program: Path = PROJECT_ROOT / "__main__.py"
    folder: Path = PROJECT_ROOT
    backend: str | None = None
    passphrase: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    debug_providers: Mapping[str, int] = field(default_factory=dict)
    config_folder: Path | None = None

    def variables(self) -> dict[str, str]:
        """Environment variables of the engine."""
        found = {
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_HOME": str(pulumi_home()),
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PATH": os.pathsep.join([str(launcher_dir()), os.environ.get("PATH", "")]),
            **self.environment,
        }
        if self.backend:
            found["PULUMI_BACKEND_URL"] = self.backend
        if self.passphrase is not None:
            found["PULUMI_CONFIG_PASSPHRASE"] = self.passphrase
        if self.debug_providers:
            found["PULUMI_DEBUG_PROVIDERS"] = ",".join(f"{name}:{port}" for name, port in self.debug_providers.items())
        return found


class Deployment:
    """One stack in the engine. Each method is one run and returns what happened; a failed run is no exception.

    Args:
        workspace: where and how.
        on_event: told of each engine event, for a progress display.
        told: gets lines for the user (cancelling and so on).

    Raises:
        CannotRunError: HPC711, the stack cannot be opened.
    """

    def __init__(
        self,
        workspace: Workspace,
        on_event: OnEvent = lambda event: None,
        told: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.workspace = workspace
        self._on_event = on_event
        self._told = told
        self._stack = self._open()

    def preview(self, policy_packs: Sequence[Path] = (), policy_configs: Sequence[Path] = ()) -> RunResult:
        """What `up` would do."""
        return self._run(
            "preview",
            lambda **options: self._stack.preview(
                policy_packs=[str(pack) for pack in policy_packs] or None,
                policy_pack_configs=[str(file) for file in policy_configs] or None,
                **options,
            ),
        )

    def up(self, policy_packs: Sequence[Path] = (), policy_configs: Sequence[Path] = ()) -> RunResult:
        """Make the cloud what the stack says. A broken-off earlier run is taken up where it stopped."""
        return self._run(
            "up",
            lambda **options: self._stack.up(
                policy_packs=[str(pack) for pack in policy_packs] or None,
                policy_pack_configs=[str(file) for file in policy_configs] or None,
                show_secrets=False,
                **options,
            ),
        )

    def refresh(self, *, preview_only: bool = False) -> RunResult:
        """Bring the state up to date with the cloud; with `preview_only` just say what drifted."""
        return self._run(
            "refresh",
            lambda **options: self._stack.refresh(preview_only=preview_only, show_secrets=False, **options),
        )

    def destroy(self) -> RunResult:
        """Remove everything that is not protected or retained.

        The state is refreshed first: the provider tries for minutes to take an address from an instance that somebody
        else has deleted, and gives up then.
        """
        return self._run("destroy", lambda **options: self._stack.destroy(refresh=True, show_secrets=False, **options))

    def remove(self) -> None:
        """Forget the empty stack."""
        self._stack.workspace.remove_stack(self.workspace.stack)

    def outputs(self) -> dict[str, Any]:
        """Stack outputs in clear, secrets too: keep them out of logs."""
        return {name: output.value for name, output in self._stack.outputs().items()}

    def export(self) -> dict[str, Any]:
        """The deployment as the state backend has it; secrets stay encrypted."""
        return dict(self._stack.export_stack().deployment or {})

    def repair(self, settle: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Take away what a killed run left: its engine, its lock, and creates of which nobody knows how they ended.

        Args:
            settle: gets a deployment with pending operations, and returns it without.
        """
        from pulumi.automation import Deployment as State

        if self.workspace.backend and self.workspace.backend.startswith("file://"):
            end_holders(Path(self.workspace.backend.removeprefix("file://")), self.workspace.stack, self._told)
        self._stack.cancel()
        state = self._stack.export_stack()
        if (state.deployment or {}).get("pending_operations"):
            self._stack.import_stack(State(state.version, settle(dict(state.deployment or {}))))
            self._stack.refresh(show_secrets=False, on_output=lambda line: None)

    def _open(self) -> Stack:
        from pulumi import automation as auto
        from pulumi.automation.errors import CommandError

        workspace = self.workspace
        if workspace.folder != PROJECT_ROOT:
            workspace.folder.mkdir(parents=True, exist_ok=True)
            self._mirror(PROJECT_ROOT / _PROJECT_FILE, workspace.folder / _PROJECT_FILE)
            if workspace.config_folder is None:
                self._copy_stack_file()
            else:
                where = os.path.relpath(workspace.config_folder, workspace.folder)
                with (workspace.folder / _PROJECT_FILE).open("a", encoding="utf-8") as out:
                    out.write(f"stackConfigDir: {json.dumps(where)}\n")
        if workspace.backend and workspace.backend.startswith("file://"):
            Path(workspace.backend.removeprefix("file://")).mkdir(parents=True, exist_ok=True)
        root = launcher(launcher_dir().parent / "session", workspace.cli)
        try:
            return _read_whole(
                auto.create_or_select_stack,
                workspace.stack,
                program=self._program,
                project_name=_project_name(workspace.folder / _PROJECT_FILE),
                opts=auto.LocalWorkspaceOptions(
                    work_dir=str(workspace.folder),
                    env_vars=workspace.variables(),
                    pulumi_command=auto.PulumiCommand(root=str(root), skip_version_check=True),
                ),
            )
        except CommandError as error:
            raise CannotRunError(
                f"the stack {workspace.stack} cannot be opened: {_last_line(str(error))}",
                code="HPC711",
                fix="log in to a state backend with `pulumi login`, or set PULUMI_BACKEND_URL and "
                "PULUMI_CONFIG_PASSPHRASE",
            ) from error

    def _copy_stack_file(self) -> None:
        """The stack file as it is now, with the encryption salt that the private copy already has."""
        target = self.workspace.folder / f"Pulumi.{self.workspace.stack}.yaml"
        text = self.workspace.stack_file.read_text(encoding="utf-8")
        if target.exists() and not _encryption(text):
            text = "\n".join([*_encryption(target.read_text(encoding="utf-8")), text])
        target.write_text(text, encoding="utf-8")

    @staticmethod
    def _mirror(source: Path, target: Path) -> None:
        shutil.copyfile(source, target)

    def _program(self) -> None:
        before = {name: os.environ.get(name) for name in self.workspace.environment}
        os.environ.update(self.workspace.environment)
        try:
            runpy.run_path(str(self.workspace.program), run_name="__main__")
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def _run(self, kind: str, operation: Callable[..., Any]) -> RunResult:
        from pulumi.automation.errors import CommandError, ConcurrentUpdateError

        folder = EventFolder()

        def take(event: EngineEvent) -> None:
            folder.add(event)
            self._on_event(event)

        started = time.monotonic()
        outputs: Mapping[str, Any] = {}
        succeeded = True
        with forwarded(self._told) as signals:
            try:
                answer = _read_whole(
                    operation, on_event=take, on_output=lambda line: None, color="never", suppress_progress=True
                )
                outputs = {
                    name: "[secret]" if output.secret else output.value
                    for name, output in getattr(answer, "outputs", {}).items()
                }
            except ConcurrentUpdateError as error:
                raise RefusedError(
                    f"another run has locked the stack {self.workspace.stack}",
                    code="HPC712",
                    fix=f"wait for it; if it has died, run `hpc repair {self.workspace.stack}` and try again",
                ) from error
            except CommandError as error:
                succeeded = False
                if not any(folder.result(kind, succeeded=False, outputs={}, seconds=0).diagnostics):
                    folder.fail(_last_line(str(error)))
            except RuntimeError as error:
                # The engine ended before it wrote a summary: killed, or cancelled twice.
                if "summary event never found" not in str(error):
                    raise
                succeeded = False
        if signals:
            again = self.workspace.stack
            self._told(
                Note(
                    f"the {kind} of {again} was stopped; what was done stays, and running it again goes on from there "
                    f"(if it says that the stack is locked: `hpc repair {again}`)"
                )
            )
            raise KeyboardInterrupt
        return folder.result(kind, succeeded=succeeded, outputs=outputs, seconds=time.monotonic() - started)


def _read_whole(call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """What a call of the engine returns; made again where another run was writing the state that it read."""
    from pulumi.automation.errors import CommandError
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

    def half_written(error: BaseException) -> bool:
        text = str(error)
        return isinstance(error, CommandError) and "load checkpoint" in text and any(end in text for end in _HALF)

    again = Retrying(
        retry=retry_if_exception(half_written),
        wait=wait_fixed(_BETWEEN_READS_S),
        stop=stop_after_attempt(_READS),
        reraise=True,
    )
    return again(call, *arguments, **options)


def _project_name(file: Path) -> str:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("name:"):
            return line.split(":", 1)[1].strip()
    raise CannotRunError(f"{file} has no name", code="HPC713", fix="give the project a name: `name: hpc`")


def _encryption(text: str) -> list[str]:
    """Lines of a stack file that say how its secrets are encrypted."""
    return [line for line in text.splitlines() if line.startswith("encrypt")]


def _last_line(text: str) -> str:
    """The last error of what a command wrote, without the labels that Automation API and engine put before it."""
    lines = [line.strip().removeprefix("stderr:").strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("stdout:")]
    told = [line for line in lines if line.startswith("error:")]
    return (told or lines or ["the engine gave no reason"])[-1].removeprefix("error:").strip()
