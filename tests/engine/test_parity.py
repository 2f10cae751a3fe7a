"""The same program through the real plugins and through the stand-ins leaves the same cloud."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hpc.engine.plugins import ensure_plugins
from tests.engine.conftest import Stack

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: What differs from run to run, whoever makes it: times, keys, and what follows from them.
_CHANCE = {
    *("attached", "created", "expires", "modified", "started", "updated"),
    *("public_key", "fingerprint", "mac", "serial", "account", "role_id"),
    *("router_id", "forward_table_id", "snat_table_id", "domain"),
    *("UserData", "SystemDisk.Description"),  # they name a mount target, and the checksum of that
}

#: An id that the cloud made up ends in a random part; ids that are names stay.
_RANDOM = re.compile(r"[a-z0-9]{10,}$")
_ADDRESS = re.compile(r"\b198\.18\.\d+\.\d+\b")


def plain(value: Any) -> Any:
    """A document without what is chance; an empty value is as good as none."""
    if isinstance(value, dict):
        tags = {value[key]: value[f"{key[:-3]}Value"] for key in value if re.fullmatch(r"Tag\.\d+\.Key", key)}
        value = {key: item for key, item in value.items() if not key.startswith("Tag.")} | (
            {"Tags": tags} if tags else {}
        )
        return {key: plain(item) for key, item in value.items() if key not in _CHANCE and item not in ("", None)}
    return [plain(item) for item in value] if isinstance(value, list) else value


def remains(resources: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """Documents by kind, ids that the cloud made up replaced by the kind of what they name."""
    made_up = {
        str(document["id"]): f"<{kind}>"
        for kind, documents in resources.items()
        for document in documents
        if kind == "mount_target" or _RANDOM.search(str(document.get("id", "")))
    }

    def text(document: dict[str, Any]) -> str:
        found = json.dumps(plain(document), sort_keys=True)
        for identity in sorted(made_up, key=len, reverse=True):
            found = found.replace(identity, made_up[identity])
        return _ADDRESS.sub("<address>", found)

    return {kind: sorted(text(document) for document in documents) for kind, documents in resources.items()}


def flat(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested keys as one level: `data.HttpTokens`."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        found.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return found


@pytest.fixture
def cloud_after_up(
    life: Stack, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, list[str]]]:
    def make(kind: str) -> dict[str, list[str]]:
        from hpc.deploy.local import cloud_dir
        from localcloud.api.launch import stop

        monkeypatch.setenv("HPC_PROVIDERS", kind)
        monkeypatch.setenv("HPC_STATE_DIR", str(tmp_path / kind))
        try:
            with ExitStack() as stack:
                session = life.session(stack)
                assert session.cloud is not None
                result = session.deployment.up()
                assert result.succeeded, result.first_error
                return remains(session.cloud.snapshot()["resources"])
        finally:
            stop(cloud_dir())

    return make


def test_both_kinds_of_plugins_leave_the_same_cloud(
    cloud_after_up: Callable[[str], dict[str, list[str]]], engine: Path
) -> None:
    missing = [plugin.name for plugin in ensure_plugins(engine) if plugin.path is None]
    if missing:
        pytest.skip(f"the real plugins cannot be had: {', '.join(missing)}")
    real, stand_in = cloud_after_up("real"), cloud_after_up("stand-in")
    assert set(real) == set(stand_in)
    differences = [
        f"{kind}: {key}: real {a.get(key)!r}, stand-in {b.get(key)!r}"
        for kind in sorted(real)
        for one, other in zip(real[kind], stand_in[kind], strict=True)
        for a, b in [(flat(json.loads(one)), flat(json.loads(other)))]
        for key in sorted({*a, *b})
        if a.get(key) != b.get(key)
    ]
    assert not differences, "\n".join(differences)
