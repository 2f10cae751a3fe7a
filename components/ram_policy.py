"""Policy documents of RAM roles, made from the actions that the code on the nodes says it calls. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

#: The cloud's own name of the service that hands a role to an instance.
ECS_SERVICE = "ecs.aliyuncs.com"

#: First words of actions that only read. Many of them know no resource but `*`
#: (https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-authorization).
_READING = ("Describe", "List", "Get", "Query")


def assume_role_document() -> str:
    """Trust policy: instances may take the role, nobody else."""
    statement: dict[str, object] = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": [ECS_SERVICE]},
    }
    return _document([statement])


def management_document(actions: Iterable[str], region: str, compute_role: str) -> str:
    """What a management node may do: read what it needs to, change things in its own region, pass on one role.

    Args:
        actions: `ecs:RunInstances` and the like; a wildcard is refused.
        region: region id that changing actions are held to.
        compute_role: name of the only role that may be given to new instances.

    Raises:
        ValueError: an action is not of the form `product:Action`, or has a wildcard.
    """
    wanted = sorted(set(actions) - {"ram:PassRole"})
    for action in wanted:
        product, _, verb = action.partition(":")
        if not (product.isalnum() and verb.isalnum()):
            raise ValueError(f"{action!r} is not a single action of a product")
    reading = [action for action in wanted if action.partition(":")[2].startswith(_READING)]
    changing = [action for action in wanted if action not in reading]
    statements: list[dict[str, object]] = []
    if reading:
        statements.append({"Effect": "Allow", "Action": reading, "Resource": "*"})
    if changing:
        # RunInstances is checked against the vSwitch, too, which belongs to another product.
        products = sorted({action.partition(":")[0] for action in changing} | {"vpc"})
        resources = [f"acs:{product}:{region}:*:*" for product in products]
        statements.append({"Effect": "Allow", "Action": changing, "Resource": resources})
    statements.append(
        {
            "Effect": "Allow",
            "Action": "ram:PassRole",
            "Resource": f"acs:ram:*:*:role/{compute_role.lower()}",
            "Condition": {"StringEquals": {"acs:Service": ECS_SERVICE}},
        }
    )
    return _document(statements)


def _document(statements: list[dict[str, object]]) -> str:
    return json.dumps({"Version": "1", "Statement": statements}, sort_keys=True)
