"""The RAM actions that the daemon needs. The policy of the management node's role is generated from this list."""

from __future__ import annotations

#: As RAM policies name them.
ACTIONS: tuple[str, ...] = (
    "ecs:DeleteInstances",
    "ecs:DescribeAccountAttributes",
    "ecs:DescribeInstances",
    "ecs:GetInstanceConsoleOutput",
    "ecs:ModifyInstanceAutoReleaseTime",
    "ecs:RunInstances",
    "ecs:TagResources",
)
