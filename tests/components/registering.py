"""Runs clusters against the recorder, each in a run-time of its own, and compares what two of them register."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from provider_schema import force_new

from components.cluster import Cluster, ClusterArgs
from components.provider import LocalCloud
from components.recording import Recording, Registered, record_into
from hpc.catalog import load_catalog
from hpc.paths import PROJECT_ROOT
from hpc.plan import catalog_invokes
from hpc.spec.cluster import ClusterSpec

STACKS = ("dev", "staging", "prod", "local")

PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nnot-a-real-key\n"
PUBLIC_KEY = "ssh-rsa AAAAB3Nza hpc-cluster"
MUNGE_KEY = "bXVuZ2Uta2V5LW9mLXRlc3Rz"
PASSWORD = "password-of-tests"
SECRETS = (PRIVATE_KEY, "not-a-real-key", MUNGE_KEY, PASSWORD)


def stack_values(name: str) -> dict[str, Any]:
    """`hpc:cluster` of a shipped stack, free to be changed."""
    path: Path = PROJECT_ROOT / f"Pulumi.{name}.yaml"
    return copy.deepcopy(yaml.safe_load(path.read_text())["config"]["hpc:cluster"])


def changed(values: dict[str, Any], **updates: Any) -> dict[str, Any]:
    return {**copy.deepcopy(values), **updates}


def small(**updates: Any) -> dict[str, Any]:
    """A small valid cluster with two pools."""
    values = {
        "name": "c",
        "region": "cn-hangzhou",
        "zones": ["cn-hangzhou-j", "cn-hangzhou-k"],
        "network": {"ssh_from": ["203.0.113.0/24"]},
        "pools": [
            {"name": "a", "instance_types": ["ecs.c8ae.4xlarge"], "max": 4},
            {"name": "b", "instance_types": ["ecs.c8ae.16xlarge"], "max": 2, "charge": "payg"},
        ],
    }
    return changed(values, **updates)


def after_up(kind: str, name: str, inputs: Any) -> dict[str, Any]:
    """Outputs that the providers would give."""
    if kind == "command:local:Command":
        pair = json.dumps({"private": PRIVATE_KEY, "public": PUBLIC_KEY})
        secret = {"ssh-key": pair, "munge-key": MUNGE_KEY, "password": PASSWORD}
        return {"stdout": secret.get(inputs.get("create"), ""), "stderr": ""}
    return {
        "alicloud:ecs/instance:Instance": {"primaryIpAddress": f"10.0.0.{sum(name.encode()) % 250}"},
        "alicloud:ecs/eipAddress:EipAddress": {"ipAddress": "198.51.100.7"},
        "alicloud:vpc/natGateway:NatGateway": {"snatTableIds": "stb-1"},
        "alicloud:nas/mountTarget:MountTarget": {"mountTargetDomain": f"{name}.cn-hangzhou.nas.aliyuncs.com"},
    }.get(kind, {})


@dataclass
class Run:
    """What a cluster registered.

    Attributes:
        recording: everything.
        error: what it raised, or None.
    """

    recording: Recording = field(default_factory=Recording)
    error: Exception | None = None

    @property
    def resources(self) -> list[Registered]:
        return self.recording.resources

    def of(self, kind: str) -> list[Registered]:
        return [resource for resource in self.resources if resource.type.endswith(kind)]

    def named(self, name: str) -> Registered:
        (found,) = [resource for resource in self.resources if resource.name == name]
        return found

    @property
    def by_urn(self) -> dict[str, Registered]:
        return {resource.urn: resource for resource in self.resources}


def run(values: dict[str, Any], *, preview: bool = False, local: LocalCloud | None = None) -> Run:
    """Register a cluster. Without `preview` the outputs of resources are known, so that everything behind them runs."""
    import pulumi

    catalog = load_catalog()
    spec = ClusterSpec.model_validate(values)
    done = Run()

    def program() -> None:
        cluster = Cluster(spec.name, ClusterArgs(spec, catalog, local))
        for name, value in cluster.outputs.items():
            pulumi.export(name, value)

    try:
        record_into(
            done.recording,
            program,
            invokes=catalog_invokes(catalog),
            outputs=None if preview else after_up,
            config={},
            project="hpc",
            stack="test",
        )
    except Exception as error:
        done.error = error
    return done


def registered(values: dict[str, Any], *, preview: bool = False, local: LocalCloud | None = None) -> Run:
    """Like `run`, for a cluster that must not fail."""
    done = run(values, preview=preview, local=local)
    if done.error:
        raise done.error
    return done


@dataclass
class Changes:
    """Difference of two runs.

    Attributes:
        created, deleted: names of resources.
        updated: changed inputs by name of the resource; components are left out.
        bootstrap: commands and copies of the bootstrap that are new, gone or changed, which are in nothing else.
        replaced: inputs that would replace it, by name of the resource.
    """

    created: set[str]
    deleted: set[str]
    updated: dict[str, set[str]]
    replaced: dict[str, set[str]]
    bootstrap: set[str]


def changes(before: Run, after: Run) -> Changes:
    def apart(run: Run) -> tuple[dict[str, Registered], dict[str, Registered]]:
        bootstrap = {urn: r for urn, r in run.by_urn.items() if "hpc:bootstrap:Bootstrap$" in urn}
        return {urn: r for urn, r in run.by_urn.items() if urn not in bootstrap}, bootstrap

    (old, old_bootstrap), (new, new_bootstrap) = apart(before), apart(after)
    both = old_bootstrap | new_bootstrap
    touched = {
        both[urn].name
        for urn in both
        if urn not in old_bootstrap
        or urn not in new_bootstrap
        or old_bootstrap[urn].inputs != new_bootstrap[urn].inputs
    }
    updated: dict[str, set[str]] = {}
    replaced: dict[str, set[str]] = {}
    for urn in old.keys() & new.keys():
        a, b = old[urn], new[urn]
        keys = {key for key in a.inputs.keys() | b.inputs.keys() if a.inputs.get(key) != b.inputs.get(key)}
        keys -= set(b.ignore_changes)
        if keys and b.custom:
            updated[b.name] = keys
            if forced := keys & force_new(b.type):
                replaced[b.name] = forced
    return Changes(
        {new[urn].name for urn in new.keys() - old.keys()},
        {old[urn].name for urn in old.keys() - new.keys()},
        updated,
        replaced,
        touched,
    )
