"""Resource Access Management."""

# ruff: noqa: E402  (the packages are slimmed before anything of them is imported)

from components.sdk.slim import slim

slim("ram")

from pulumi_alicloud.ram.policy import Policy
from pulumi_alicloud.ram.role import Role
from pulumi_alicloud.ram.role_policy_attachment import RolePolicyAttachment

__all__ = ["Policy", "Role", "RolePolicyAttachment"]
