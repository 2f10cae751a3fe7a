"""Letting elastic nodes go when the cluster is destroyed: a command whose delete step sweeps them by tag."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import pulumi
from pulumi_command import local

from components.provider import ENDPOINT_VARIABLE
from hpc.spec.cluster import ClusterSpec


@dataclass(frozen=True, slots=True)
class SweepArgs:
    """Arguments of `Sweep`.

    Attributes:
        spec: the cluster.
        before: resources that must outlive the elastic nodes: they are deleted after this command has run.
    """

    spec: ClusterSpec
    before: tuple[pulumi.Resource, ...]


class Sweep(pulumi.ComponentResource):
    """Deletes the cluster's elastic nodes, then lets the resources be deleted that were made before it.

    The step runs where Pulumi runs and asks the cloud for the cluster's tag, so it needs no living management node. It
    is a command and not a hook, because a resource with a delete hook cannot be destroyed without the program.
    Credentials come from the environment of the engine; they are never arguments and never in state.
    """

    def __init__(self, name: str, args: SweepArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("hpc:sweep:Sweep", name, {"cluster": args.spec.name, "region": args.spec.region}, opts)
        self.command = local.Command(
            f"{name}-command",
            delete=sweep_command(args.spec),
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(args.before)),
        )
        self.register_outputs({})


def sweep_command(spec: ClusterSpec) -> str:
    """The shell command. It holds no path of this machine, so that another one can destroy the cluster, too."""
    cluster, region = shlex.quote(spec.name), shlex.quote(spec.region)
    endpoint = f'${{{ENDPOINT_VARIABLE}:+--endpoint "${ENDPOINT_VARIABLE}"}}'
    return (
        '"${HPC_PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}" '
        f"-m hpc.elastic.sweep --cluster {cluster} --region {region} {endpoint}"
    )
