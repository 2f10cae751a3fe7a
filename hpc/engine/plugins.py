"""The real provider plugins: where they are, and how they get there."""

from __future__ import annotations

import lzma
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hpc.engine.places import part_of, writing
from hpc.engine.versions import ALICLOUD_VERSION, COMMAND_VERSION
from hpc.errors import CannotRunError
from hpc.paths import PROJECT_ROOT, cache_dir

Progress = Callable[[str], None]

#: A download that failed is not tried again for this long, s.
_RETRY_AFTER_S = 3600


@dataclass(frozen=True, slots=True)
class Plugin:
    """A resource plugin that the stacks need.

    Attributes:
        name: `alicloud` or `command`.
        version: version that the SDK in the lock file asks for.
        path: folder in the Pulumi home that holds it, or None where it is missing.
    """

    name: str
    version: str
    path: Path | None

    @property
    def remedy(self) -> str:
        """The command that installs it."""
        return f"pulumi plugin install resource {self.name} v{self.version}"


def pulumi_home() -> Path:
    """The Pulumi home that runs use: the one that is set, the user's if they are logged in, else one in the cache."""
    if chosen := os.environ.get("PULUMI_HOME"):
        return Path(chosen)
    own = Path.home() / ".pulumi"
    return own if (own / "credentials.json").exists() else cache_dir() / "pulumi-home"


def launcher_dir() -> Path:
    """Folder for the helpers that the engine looks up on PATH, such as the language host."""
    return cache_dir() / "engine" / "launchers"


def _wanted() -> tuple[tuple[str, str], ...]:
    return (("alicloud", ALICLOUD_VERSION), ("command", COMMAND_VERSION))


def find_plugins() -> tuple[Plugin, ...]:
    """Which of the plugins are there: in the Pulumi home that runs use, or on PATH."""
    found = []
    for name, version in _wanted():
        folder = pulumi_home() / "plugins" / f"resource-{name}-v{version}"
        path = folder if (folder / f"pulumi-resource-{name}").is_file() else None
        on_path = shutil.which(f"pulumi-resource-{name}")
        found.append(Plugin(name, version, path or (Path(on_path).parent if on_path else None)))
    return tuple(found)


def ensure_plugins(cli: Path, progress: Progress = lambda line: None) -> tuple[Plugin, ...]:
    """Get the plugins that are missing, from archives beside the checkout or by download; say which are there then."""
    for plugin in find_plugins():
        if plugin.path is None and not _unpack(plugin, progress):
            _download(cli, plugin, progress)
    return find_plugins()


def _archives() -> Path | None:
    """Folder with plugin archives: `HPC_PLUGIN_ARCHIVES`, or one that lies beside the checkout."""
    if chosen := os.environ.get("HPC_PLUGIN_ARCHIVES"):
        return Path(chosen)
    beside = PROJECT_ROOT.parent / "shared" / "plugins"
    return beside if beside.is_dir() else None


def _platform() -> str:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}-{machine}"


def archive_of(program: str, version: str) -> Path | None:
    """Archive of a plugin's program for this platform, such as `pulumi-resource-alicloud`, or None."""
    archives = _archives()
    file = archives / f"{program}-v{version}-{_platform()}.xz" if archives else None
    return file if file and file.is_file() else None


def _unpack(plugin: Plugin, progress: Progress) -> bool:
    archive = archive_of(f"pulumi-resource-{plugin.name}", plugin.version)
    if archive is None:
        return False
    progress(f"Unpacking the {plugin.name} plugin {plugin.version}")
    target = pulumi_home() / "plugins" / f"resource-{plugin.name}-v{plugin.version}" / f"pulumi-resource-{plugin.name}"
    unpack_file(archive, target)
    return True


def unpack_file(archive: Path, target: Path) -> None:
    """Unpack a program (xz); it appears whole or not at all.

    Raises:
        CannotRunError: HPC715, there is no writing there; HPC716, the archive is broken.
    """
    try:
        with writing(target.parent):
            part = part_of(target)
            with lzma.open(archive) as packed, part.open("wb") as out:
                shutil.copyfileobj(packed, out)
            part.chmod(0o755)
            part.rename(target)
    except (lzma.LZMAError, EOFError) as error:
        raise CannotRunError(
            f"the archive {archive} is broken: {error}", code="HPC716", fix="get it again, or take it away"
        ) from error


def _download(cli: Path, plugin: Plugin, progress: Progress) -> None:
    mark = cache_dir() / "engine" / f"no-download-{plugin.name}-{plugin.version}"
    if mark.exists() and time.time() - mark.stat().st_mtime < _RETRY_AFTER_S:
        return
    progress(f"Trying to download the {plugin.name} plugin {plugin.version}")
    try:
        subprocess.run(
            [str(cli), "plugin", "install", "resource", plugin.name, f"v{plugin.version}"],
            env={**os.environ, "PULUMI_HOME": str(pulumi_home()), "PULUMI_SKIP_UPDATE_CHECK": "true"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20 if not os.environ.get("CI") else 10,
            check=True,
        )
        mark.unlink(missing_ok=True)
    except (OSError, subprocess.SubprocessError):
        # Without the mark the next run tries again.
        with suppress(OSError):
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
