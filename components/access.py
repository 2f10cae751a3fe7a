"""Secrets of a cluster (SSH key of the program, munge key, database password) and the ECS key pair."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import pulumi
from pulumi_command import local

from components.sdk import ecs
from hpc.paths import PROJECT_ROOT
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import cluster_tags


@dataclass(frozen=True, slots=True)
class AccessArgs:
    """Arguments of `Access`.

    Attributes:
        spec: the cluster.
    """

    spec: ClusterSpec


class Access(pulumi.ComponentResource):
    """Secrets made once by `components.keygen` and kept in Pulumi's state, encrypted; the key pair of all nodes.

    Attributes:
        private_key: OpenSSH private key with which the program reaches the nodes; secret.
        public_key: its public half.
        munge_key: base64; secret.
        database_password: secret.
        key_pair_name: of the ECS key pair.
    """

    private_key: pulumi.Output[str]
    public_key: pulumi.Output[str]
    munge_key: pulumi.Output[str]
    database_password: pulumi.Output[str]
    key_pair_name: pulumi.Output[str]

    def __init__(self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("hpc:access:Access", name, {}, opts)
        pair = self._secret(f"{name}-ssh-key", "ssh-key")
        self.private_key = pulumi.Output.secret(pair.apply(lambda text: str(json.loads(text)["private"])))
        self.public_key = pulumi.Output.unsecret(pair.apply(lambda text: str(json.loads(text)["public"])))
        self.munge_key = self._secret(f"{name}-munge-key", "munge-key")
        self.database_password = self._secret(f"{name}-database-password", "password")
        key_pair = ecs.EcsKeyPair(
            f"{name}-key-pair",
            key_pair_name=f"hpc-{args.spec.name}",
            public_key=self.public_key,
            tags=cluster_tags(args.spec, "access"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.key_pair_name = key_pair.key_pair_name
        self.register_outputs({"keyPairName": self.key_pair_name, "publicKey": self.public_key})

    def _secret(self, name: str, kind: str) -> pulumi.Output[str]:
        command = local.Command(
            name,
            interpreter=[sys.executable, "-m", "components.keygen"],
            create=kind,
            # An update gives the old secret again. Without this, pulumi-command would run `create` once more.
            update="keep",
            dir=str(PROJECT_ROOT),
            logging=local.Logging.NONE,
            opts=pulumi.ResourceOptions(
                parent=self,
                additional_secret_outputs=["stdout", "stderr"],
                # Paths differ between machines; the secret does not depend on them.
                ignore_changes=["interpreter", "dir"],
            ),
        )
        return pulumi.Output.secret(command.stdout)
