"""RAM roles: what the management and compute nodes may do in the cloud."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from components.ram_policy import assume_role_document, management_document
from components.sdk import ram
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import cluster_tags


def role_name(spec: ClusterSpec, role: str) -> str:
    """Name of a role. Names are the account's, not a region's, so the region is part of it (at most 64 characters)."""
    return f"hpc-{spec.name}-{spec.region}-{role}"


@dataclass(frozen=True, slots=True)
class RolesArgs:
    """Arguments of `Roles`.

    Attributes:
        spec: the cluster.
        management_actions: what the code on the management node calls, `ecs:RunInstances` and the like.
    """

    spec: ClusterSpec
    management_actions: tuple[str, ...]


class Roles(pulumi.ComponentResource):
    """A role for management nodes with exactly the actions their code needs, and one for compute nodes with none.

    Compute nodes run the users' programs, and every program on a node can take the role's credentials. Their role
    allows nothing; it is there so that a site can attach its own policy, for instance to read a bucket.

    Attributes:
        management_name, compute_name: names of the roles.
    """

    management_name: pulumi.Output[str]
    compute_name: pulumi.Output[str]

    def __init__(self, name: str, args: RolesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec = args.spec
        super().__init__("hpc:roles:Roles", name, {"managementActions": list(args.management_actions)}, opts)
        management = self._role(name, spec, "management")
        compute = self._role(name, spec, "compute")
        policy = ram.Policy(
            f"{name}-management-policy",
            policy_name=role_name(spec, "management"),
            description=f"HPC cluster {spec.name}: starts and releases compute nodes",
            policy_document=management_document(
                args.management_actions, spec.region, compute_role=role_name(spec, "compute")
            ),
            force=True,
            tags=cluster_tags(spec, "access"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        ram.RolePolicyAttachment(
            f"{name}-management-policy-attachment",
            policy_name=policy.policy_name,
            policy_type="Custom",
            role_name=management.role_name,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.management_name, self.compute_name = management.role_name, compute.role_name
        self.register_outputs({"managementName": self.management_name, "computeName": self.compute_name})

    def _role(self, name: str, spec: ClusterSpec, role: str) -> ram.Role:
        return ram.Role(
            f"{name}-{role}-role",
            role_name=role_name(spec, role),
            description=f"HPC cluster {spec.name}: {role} nodes",
            assume_role_policy_document=assume_role_document(),
            # Policies that a site has attached by hand must not keep the role from being deleted.
            force=True,
            tags=cluster_tags(spec, role),
            opts=pulumi.ResourceOptions(parent=self),
        )
