"""Nothing but the SDK's start."""

import pulumi  # noqa: F401
