"""The parts of the SDK that the project uses, and nothing done with them."""

import pulumi  # noqa: F401
from pulumi_command import local, remote  # noqa: F401

from components.sdk import ecs, nas, ram, vpc  # noqa: F401
