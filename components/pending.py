"""Rooms of `hpc` that the cluster needs and that may not be there yet."""

from __future__ import annotations

try:
    from hpc.elastic.actions import ACTIONS
except ModuleNotFoundError:
    ACTIONS = ("ecs:DeleteInstances", "ecs:DescribeInstances", "ecs:RunInstances", "ecs:TagResources")

__all__ = ["ACTIONS"]
