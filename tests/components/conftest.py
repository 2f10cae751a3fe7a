from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Bundles go into a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
