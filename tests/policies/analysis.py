"""`pulumi policy analyze` on states that tests make: the real engine and the real pack, no provider, no program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc.engine.cli import find_cli
from hpc.engine.project import Workspace
from hpc.paths import PROJECT_ROOT
from policies.model import Resource
from policies.props import UNKNOWN

PACK = PROJECT_ROOT / "policies" / "analyzer"


def plain(value: Any) -> Any:
    """What a state has in place of a value that was not known at the preview."""
    if value is UNKNOWN:
        return "id-of-something"
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def state_of(resources: Iterable[Resource]) -> dict[str, Any]:
    """A state as `pulumi stack export` writes it."""
    root = "urn:pulumi:dev::hpc::pulumi:pulumi:Stack::hpc-dev"
    stamp = "2026-01-01T00:00:00Z"
    entries: list[dict[str, Any]] = [
        {"urn": root, "custom": False, "type": "pulumi:pulumi:Stack", "created": stamp, "modified": stamp}
    ]
    resources = list(resources)
    region = next((one.region for one in resources if one.region), "cn-hangzhou")
    provider = "urn:pulumi:dev::hpc::pulumi:providers:alicloud::default"
    identity = "11111111-2222-3333-4444-555555555555"
    entries.append(
        {
            "urn": provider,
            "custom": True,
            "id": identity,
            "type": "pulumi:providers:alicloud",
            "inputs": {"region": region},
            "outputs": {"region": region},
        }
    )
    for one in resources:
        custom = not one.type.startswith("hpc:")
        props = plain(one.props.values)
        entry = {
            "urn": one.urn,
            "custom": custom,
            "type": one.type,
            "inputs": props,
            "outputs": props,
            "parent": one.parent or root,
            "protect": one.protect,
            "created": stamp,
            "modified": stamp,
        }
        if custom:
            known = {urn for urns in one.sources.values() for urn in urns}
            entry |= {
                "id": f"{one.name}-id",
                "provider": f"{provider}::{identity}",
                "dependencies": sorted(known),
                "propertyDependencies": {key: list(urns) for key, urns in one.sources.items()},
            }
        entries.append(entry)
    manifest = {"time": stamp, "magic": "", "version": "v3.274.1"}
    return {"version": 3, "deployment": {"manifest": manifest, "resources": entries}}


@dataclass(frozen=True)
class Analysis:
    """What the engine said.

    Attributes:
        exit_code: 0 where no mandatory rule is violated.
        said: (rule, level, URN, message) of each violation.
        text: everything it wrote, for messages of tests.
    """

    exit_code: int
    said: tuple[tuple[str, str, str, str], ...]
    text: str

    def rules(self, level: str = "mandatory") -> set[str]:
        return {rule for rule, its_level, _, _ in self.said if its_level == level}

    def messages(self, rule: str) -> list[str]:
        return [message for name, _, _, message in self.said if name == rule]


def environment() -> dict[str, str]:
    cli = find_cli()
    assert cli is not None
    workspace = Workspace(stack="dev", stack_file=PROJECT_ROOT / "Pulumi.dev.yaml", cli=cli)
    return {**os.environ, **workspace.variables(), "HPC_PYTHON": sys.executable}


def analyze(
    state: Mapping[str, Any], folder: Path, config: Mapping[str, Any] | None = None, pack: Path = PACK
) -> Analysis:
    """Run the engine on a state."""
    cli = find_cli()
    assert cli is not None
    (folder / "state.json").write_text(json.dumps(state))
    command = [
        str(cli),
        "policy",
        "analyze",
        "--file",
        str(folder / "state.json"),
        "--policy-pack",
        str(pack),
        "--json",
    ]
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
        command += ["--policy-pack-config", str(folder / "config.json")]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120)
    said = []
    for line in done.stdout.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if policy := event.get("policyEvent"):
            said.append(
                (
                    policy["policyName"],
                    policy["enforcementLevel"],
                    policy.get("resourceUrn", ""),
                    policy["message"],
                )
            )
    return Analysis(done.returncode, tuple(said), done.stdout + done.stderr)
