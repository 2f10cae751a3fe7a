"""The stand-in command provider behind the engine's protocol."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localcloud.providers.command import ssh
from localcloud.providers.servicer import Provider, ProviderError
from localcloud.providers.values import UNKNOWN

LOCAL = "command:local:Command"
REMOTE = "command:remote:Command"
COPY = "command:remote:CopyToRemote"

_RUNS = frozenset(
    {"addPreviousOutputInEnv", "create", "delete", "environment", "logging", "stdin", "triggers", "update"}
)

#: Inputs by type, as pulumi-command 1.2.1 has them: (required, optional).
INPUTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    LOCAL: (frozenset(), _RUNS | {"archivePaths", "assetPaths", "dir", "interpreter"}),
    REMOTE: (frozenset({"connection"}), _RUNS),
    COPY: (frozenset({"connection", "remotePath", "source"}), frozenset({"triggers"})),
}


class Command(Provider):
    """Runs commands here and on other hosts, and copies files there."""

    version = "1.2.1"

    def serves(self, token: str) -> bool:
        """Whether the type is one of the three."""
        return token in INPUTS

    def configure(self, arguments: Mapping[str, Any]) -> None:
        """There is nothing to configure."""

    def check(self, token: str, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        """Names and presence of the inputs."""
        required, optional = INPUTS[token]
        problems = [(name, "is required") for name in sorted(required) if inputs.get(name) is None]
        problems += [(name, "is not an input of this resource") for name in sorted(set(inputs) - required - optional)]
        return problems

    def replaces(self, token: str) -> frozenset[str]:
        """A changed trigger makes the resource anew."""
        return frozenset({"triggers"})

    def preview_outputs(self, token: str, inputs: Mapping[str, Any]) -> frozenset[str]:
        """Output of a command is known after it has run."""
        return frozenset() if token == COPY else frozenset({"stdout", "stderr"})

    def create(self, token: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Copy, or run the `create` command."""
        identity = uuid.uuid4().hex
        if token == COPY:
            ssh.copy(inputs["connection"], _source_path(inputs["source"]), inputs["remotePath"])
            return identity, dict(inputs)
        return identity, {**inputs, **self._run(token, inputs.get("create"), inputs, {})}

    def read(self, token: str, identity: str, properties: dict[str, Any]) -> dict[str, Any] | None:
        """What a command did cannot be read back: it is as it was."""
        return properties

    def update(self, token: str, identity: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        """Run the `update` command, or `create` again where there is none."""
        if token == COPY:
            ssh.copy(new["connection"], _source_path(new["source"]), new["remotePath"])
            return dict(new)
        return {**new, **self._run(token, new.get("update") or new.get("create"), new, old)}

    def delete(self, token: str, identity: str, properties: dict[str, Any]) -> None:
        """Run the `delete` command where there is one."""
        if token != COPY and properties.get("delete"):
            self._run(token, properties["delete"], properties, properties)

    def invoke(self, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """No function is served."""
        raise ProviderError(f"{token} is not served by the stand-in provider")

    @staticmethod
    def _run(token: str, command: str | None, inputs: Mapping[str, Any], previous: Mapping[str, Any]) -> dict[str, Any]:
        if not command:
            return {"stdout": "", "stderr": ""}
        environment = {key: str(value) for key, value in (inputs.get("environment") or {}).items()}
        if previous and inputs.get("addPreviousOutputInEnv", True):
            for name in ("stdout", "stderr"):
                if (value := previous.get(name)) not in (None, "", UNKNOWN):
                    environment[f"PULUMI_COMMAND_{name.upper()}"] = str(value)
        if token == REMOTE:
            stdout, stderr = ssh.run(inputs["connection"], command, environment, inputs.get("stdin"))
        else:
            stdout, stderr = _run_here(command, inputs, environment)
        return {"stdout": stdout, "stderr": stderr}


def _run_here(command: str, inputs: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[str, str]:
    interpreter = inputs.get("interpreter") or ["/bin/sh", "-c"]
    done = subprocess.run(
        [*interpreter, command],
        cwd=inputs.get("dir"),
        env={**os.environ, **environment},
        input=inputs.get("stdin"),
        stdin=None if inputs.get("stdin") else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ProviderError(
            f"the command ended with exit code {done.returncode}:\n{(done.stderr or done.stdout)[-4000:]}"
        )
    return done.stdout.removesuffix("\n"), done.stderr.removesuffix("\n")


def _source_path(source: Any) -> Path:
    """Path behind a file asset or file archive; other kinds cannot be copied."""
    path = source.get("path") if isinstance(source, Mapping) else None
    if not path:
        raise ProviderError("CopyToRemote takes a FileAsset or a FileArchive")
    return Path(path)
