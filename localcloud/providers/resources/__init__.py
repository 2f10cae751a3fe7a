"""Every resource type that the stand-in alicloud provider serves, by token."""

from __future__ import annotations

from localcloud.providers.resources import ecs, instances, nas, ram, vpc
from localcloud.providers.resources.base import Resource

RESOURCES: dict[str, Resource] = {
    resource.token: resource for module in (vpc, ecs, instances, nas, ram) for resource in module.RESOURCES
}
