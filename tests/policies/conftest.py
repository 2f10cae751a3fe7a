from __future__ import annotations

from pathlib import Path

import pytest

from hpc.engine.cli import find_cli


@pytest.fixture(scope="session")
def engine() -> Path:
    found = find_cli()
    if found is None:
        pytest.skip("no Pulumi engine (make it with: python -m hpc.engine path)")
    return found
