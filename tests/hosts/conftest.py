"""The cluster of all tests in this folder: made once, removed whatever happens."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from site_of_tests import Site

from hpc.deploy.local import cloud_dir, ensure_cloud, remove_cloud
from hpc.engine.cli import find_cli
from hpc.paths import cache_dir
from localcloud.hosts import support
from localcloud.hosts.reset import leftovers


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster that is up, at the second attempt: the package mirror was away during the first one."""
    if find_cli() is None:
        pytest.skip("no Pulumi engine (make it with: python -m hpc.engine path)")
    if why := support.prepare(tmp_path_factory.mktemp("probe")):
        pytest.skip("; ".join(why))
    folder = tmp_path_factory.mktemp("faults")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPC_CACHE_DIR", str(cache_dir()))
        patch.setenv("HPC_STATE_DIR", str(folder / "state"))
        (folder / "stack").mkdir()
        made = Site(folder / "stack")
        try:
            ensure_cloud(lambda line: None, hosts=True)
            with made.mirror_off_from_the_start():
                made.up()
            again = made.up()
            assert again.code == 0, (again.stderr, again.document)
            made.connect()
            yield made
        finally:
            remove_cloud(lambda line: None)
            found = leftovers(cloud_dir())
    assert found == ()
