"""The JSON schema of `hpc:cluster`, for editors: `python -m hpc.spec.schema` prints it."""

from __future__ import annotations

import json
import sys
from typing import Any

from hpc.spec.cluster import ClusterSpec


def cluster_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of the value of `hpc:cluster`."""
    schema = ClusterSpec.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "hpc:cluster"}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(cluster_schema(), indent=2, ensure_ascii=False) + "\n")
