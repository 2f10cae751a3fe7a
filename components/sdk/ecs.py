"""Elastic Compute Service."""

# ruff: noqa: E402  (the packages are slimmed before anything of them is imported)

from components.sdk.slim import slim

slim("ecs")

from pulumi_alicloud.ecs._inputs import EcsLaunchTemplateSystemDiskArgs
from pulumi_alicloud.ecs.ecs_deployment_set import EcsDeploymentSet
from pulumi_alicloud.ecs.ecs_key_pair import EcsKeyPair
from pulumi_alicloud.ecs.ecs_launch_template import EcsLaunchTemplate
from pulumi_alicloud.ecs.eip_address import EipAddress
from pulumi_alicloud.ecs.eip_association import EipAssociation
from pulumi_alicloud.ecs.get_images import get_images
from pulumi_alicloud.ecs.instance import Instance
from pulumi_alicloud.ecs.ram_role_attachment import RamRoleAttachment
from pulumi_alicloud.ecs.security_group import SecurityGroup
from pulumi_alicloud.ecs.security_group_rule import SecurityGroupRule

__all__ = [
    "EcsDeploymentSet",
    "EcsKeyPair",
    "EcsLaunchTemplate",
    "EcsLaunchTemplateSystemDiskArgs",
    "EipAddress",
    "EipAssociation",
    "Instance",
    "RamRoleAttachment",
    "SecurityGroup",
    "SecurityGroupRule",
    "get_images",
]
