"""File Storage NAS."""

# ruff: noqa: E402  (the packages are slimmed before anything of them is imported)

from components.sdk.slim import slim

slim("nas")

from pulumi_alicloud.nas.access_group import AccessGroup
from pulumi_alicloud.nas.access_rule import AccessRule
from pulumi_alicloud.nas.file_system import FileSystem
from pulumi_alicloud.nas.mount_target import MountTarget

__all__ = ["AccessGroup", "AccessRule", "FileSystem", "MountTarget"]
