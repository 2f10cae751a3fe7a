"""The public image that instance hosts boot from: Debian 12 as an Alibaba Cloud image has it, built once per recipe.

`python -m localcloud.hosts.image` builds it. What is in it: systemd, sshd, cloud-init with the AliYun data source,
chrony, Python, pip. What is not: Slurm, MPI, an NFS client (the helper `mount.nfs` of `rootfs/` attaches NAS).
The folder `rootfs/` is laid over the packages; names end in `.in` where this repository's own tools must not take the
file for theirs.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from hpc.errors import CannotRunError
from hpc.paths import cache_dir
from localcloud.hosts.locks import file_lock
from localcloud.hosts.upstreams import Upstreams, read_upstreams

_log = logging.getLogger("localcloud.hosts.image")

SUITE = "bookworm"
PACKAGES = (
    "systemd,systemd-sysv,dbus,libpam-systemd,udev,openssh-server,cloud-init,chrony,sudo,python3,python3-venv,"
    "python3-pip,iproute2,iputils-ping,curl,ca-certificates,less,procps,kmod,netbase,ifupdown,locales,xz-utils,zstd,"
    "bzip2,nftables,vim-tiny,rsync,bsdextrautils,gpg"
)
#: Units that make no sense in a container or would go out to the network at boot.
MASKED_UNITS = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "systemd-firstboot.service",
    "getty@tty1.service",
    "console-getty.service",
    "ifupdown-pre.service",
    "networking.service",
    "cloud-init-local.service",
    "systemd-timesyncd.service",
    "systemd-udevd.service",
    "systemd-udev-trigger.service",
    "cloud-init-hotplugd.socket",
    "sys-kernel-debug.mount",
    "dev-hugepages.mount",
    "dev-mqueue.mount",
    "systemd-networkd-wait-online.service",
)
#: nfs-common brings its own mount helper, which cannot work in a host: dpkg puts it aside.
DIVERTED = ("/sbin/mount.nfs", "/sbin/mount.nfs4")
_ROOTFS = Path(__file__).parent / "rootfs"
_TIMEOUT_S = 1800

Progress = Callable[[str], None]


def recipe_hash() -> str:
    """Hash of all that decides what is in the image, except for the versions that the archive has on that day."""
    digest = hashlib.sha256()
    for text in (SUITE, PACKAGES, *MASKED_UNITS, *DIVERTED):
        digest.update(text.encode() + b"\0")
    for path in _rootfs_files():
        digest.update(str(path.relative_to(_ROOTFS)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def image_path(cache: Path | None = None) -> Path:
    """Folder of the image of this recipe, whether it is there or not."""
    return (cache or cache_dir()) / "images" / f"debian-12-{recipe_hash()}"


def ensure_image(
    progress: Progress = _log.info, *, cache: Path | None = None, upstreams: Upstreams | None = None
) -> Path:
    """Return the folder of the public image; build it if it is not there (about 40 s plus the downloads).

    Two builders at once are one build: the second waits. A killed build leaves only a folder that the next one removes.

    Args:
        progress: called with a line per step.
        cache: cache folder, or None for the user's own.
        upstreams: package sources, or None for those of this machine.

    Raises:
        CannotRunError: HPC860, the packages could not be had or installed.
    """
    target = image_path(cache)
    if target.is_dir():
        return target
    with file_lock(target.parent / ".lock"):
        if target.is_dir():
            return target
        for stale in target.parent.glob("building-*"):
            _remove(stale)
        work = Path(tempfile.mkdtemp(prefix="building-", dir=target.parent))
        try:
            root = work / "root"
            _bootstrap(root, upstreams or read_upstreams(), progress)
            progress("Fitting the image for hosts of the local cloud")
            _finish(root)
            root.rename(target)
        finally:
            _remove(work)
        progress(f"Public image ready: {target}")
    return target


def _rootfs_files() -> list[Path]:
    return sorted(path for path in _ROOTFS.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _remove(folder: Path) -> None:
    subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)


def _bootstrap(root: Path, upstreams: Upstreams, progress: Progress) -> None:
    progress(f"Building the public image: Debian 12 from {upstreams.debian}")
    options = [
        'APT::Install-Recommends "false"',
        'Acquire::Languages "none"',
        *([f'Acquire::http::Proxy "{upstreams.apt_proxy}"'] if upstreams.apt_proxy else []),
    ]
    command = [
        "mmdebstrap",
        "--variant=minbase",
        "--mode=root",
        f"--include={PACKAGES}",
        *(f"--aptopt={option}" for option in options),
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        "--dpkgopt=force-unsafe-io",
        SUITE,
        str(root),
        f"deb {upstreams.debian} {SUITE} main",
        f"deb {upstreams.debian} {SUITE}-updates main",
        f"deb {upstreams.security} {SUITE}-security main",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, umask=0o022
    ) as process:
        last: list[str] = []
        for line in process.stderr or ():
            text = line.strip()
            last = [*last, text][-8:]
            if text.startswith("I: ") and not text.startswith("I: not "):
                progress(f"mmdebstrap: {text[3:].rstrip('.')}")
        if process.wait(_TIMEOUT_S):
            raise CannotRunError(
                f"the public image could not be built: {' / '.join(last)}",
                code="HPC860",
                fix="see that `apt-get update` works on this machine, then try again",
            )


def _finish(root: Path) -> None:
    for folder in ("etc/apt/sources.list.d", "var/lib/apt/lists", "var/cache/apt"):
        shutil.rmtree(root / folder, ignore_errors=True)
    for pattern in ("etc/ssh/ssh_host_*", "var/lib/dbus/machine-id", "var/log/*.log", "var/cache/debconf/*-old"):
        for path in root.glob(pattern):
            path.unlink()
    for folder in ("etc/apt/sources.list.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
        _folder(root / folder)
    for source in _rootfs_files():
        place = root / str(source.relative_to(_ROOTFS)).removesuffix(".in")
        _folder(place.parent)
        place.unlink(missing_ok=True)  # may be a link that must not be followed
        shutil.copyfile(source, place)
        place.chmod(0o755 if "sbin" in source.parts else 0o644)
    (root / "usr/sbin/mount.nfs4").symlink_to("mount.nfs")
    for helper in DIVERTED:
        diverted = f"/usr/lib/localcloud{helper}.nfs-common"
        _folder((root / diverted[1:]).parent)
        divert = ["dpkg-divert", "--quiet", "--local", "--no-rename", "--divert", diverted, "--add", helper]
        subprocess.run(["chroot", str(root), *divert], check=True, umask=0o022)
    for unit in MASKED_UNITS:
        place = root / "etc/systemd/system" / unit
        place.unlink(missing_ok=True)
        place.symlink_to("/dev/null")


def _folder(path: Path) -> None:
    """Make a folder that everybody may enter, whatever this process's umask."""
    if not path.is_dir():
        _folder(path.parent)
        path.mkdir()
        path.chmod(0o755)


def main() -> int:
    """Build the image and print where it is."""
    try:
        path = ensure_image(lambda line: print(line, file=sys.stderr, flush=True))  # noqa: T201
    except CannotRunError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    print(path)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
