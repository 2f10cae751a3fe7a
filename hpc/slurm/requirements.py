"""The elastic daemon's Python packages, pinned with checksums: what of uv.lock it needs, in pip's format.

`python -m hpc.slurm.requirements > hpc/slurm/elastic-requirements.txt` writes the file that goes into the bundle; a
test holds it equal to the lock file.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from hpc.paths import PROJECT_ROOT

#: What `hpc.elastic` imports beyond the standard library.
ROOTS = ("alibabacloud-credentials", "alibabacloud-ecs20140526", "alibabacloud-tea-openapi", "clustershell", "tenacity")

#: The generated file, part of the package.
FILE = Path(__file__).with_name("elastic-requirements.txt")


def pinned(lock: Path = PROJECT_ROOT / "uv.lock") -> str:
    """Requirements of the daemon and everything below them, each with the checksums of its wheels and source."""
    packages: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in tomllib.loads(lock.read_text())["package"]}
    markers: dict[str, str] = {}
    waiting = [(name, "") for name in ROOTS]
    while waiting:
        name, marker = waiting.pop()
        if name in markers:
            continue
        markers[name] = marker
        waiting += [
            (below["name"], below.get("marker", ""))
            for below in packages[name].get("dependencies", [])
            if "win32" not in below.get("marker", "") and "emscripten" not in below.get("marker", "")
        ]
    return "".join(_line(packages[name], markers[name]) for name in sorted(markers))


def _line(package: dict[str, Any], marker: str) -> str:
    files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
    hashes = "".join(f" \\\n    --hash={file['hash']}" for file in files)
    condition = f" ; {marker}" if marker else ""
    return f"{package['name']}=={package['version']}{condition}{hashes}\n"


if __name__ == "__main__":
    sys.stdout.write(pinned())
