"""Both provider plugins configured, and asked once."""

import os

import pulumi
from pulumi_command import local, remote  # noqa: F401

from components.provider import local_cloud, local_provider
from components.sdk import ecs, nas, ram, vpc  # noqa: F401

provider = local_provider("cloud", "cn-hangzhou", local_cloud("bench", os.environ))
ecs.get_images(owners="system", most_recent=True, opts=pulumi.InvokeOptions(provider=provider))
local.Command("command", create="true")
