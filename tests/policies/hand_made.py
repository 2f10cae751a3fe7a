"""A Pulumi program: the resources of a JSON file, as somebody would write them by hand past the stack file.

Each has `type`, `name`, `inputs`, `parent` and `protect`. The text `$id:NAME` stands for the id of an earlier resource,
`$unknown` for a value that is known only after deployment.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pulumi

from components.provider import local_cloud, local_provider

#: Names the JSON file.
VARIABLE = "HPC_TEST_RESOURCES"


class Custom(pulumi.CustomResource):
    """A resource of a provider, inputs as the engine takes them."""


class Component(pulumi.ComponentResource):
    """A component with inputs."""


def main() -> None:
    made: dict[str, Any] = {}

    def value(given: Any) -> Any:
        if isinstance(given, dict):
            return {key: value(item) for key, item in given.items()}
        if isinstance(given, list):
            return [value(item) for item in given]
        if given == "$unknown":
            return late.id
        if isinstance(given, str) and given.startswith("$id:"):
            return made[given.removeprefix("$id:")].id
        return given

    provider = local_provider("by-hand", "cn-hangzhou", local_cloud("local", os.environ))
    late = Custom(
        "alicloud:ecs/ecsKeyPair:EcsKeyPair",
        "late",
        {"tags": {"hpc:cluster": "c", "hpc:role": "login"}},
        pulumi.ResourceOptions(provider=provider),
    )
    for one in json.loads(Path(os.environ[VARIABLE]).read_text()):
        options = pulumi.ResourceOptions(parent=made.get(one["parent"]), protect=one["protect"])
        component = one["type"].startswith("hpc:")
        if not component:
            options.provider = provider
        kind = Component if component else Custom
        made[one["name"]] = kind(one["type"], one["name"], value(one["inputs"]), options)


if __name__ == "__main__":
    main()
