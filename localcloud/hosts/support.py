"""Whether this machine can run instance hosts, and getting the programs that takes."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from hpc.errors import CannotRunError

_log = logging.getLogger("localcloud.hosts.support")

#: Debian package that has each program.
PROGRAMS = {
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "ip": "iproute2",
    "unshare": "util-linux",
    "mount": "mount",
    "cp": "coreutils",
}
#: Keys of the Debian archive, for machines of another distribution.
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_KEYRING_PACKAGE = "debian-archive-keyring"
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_APT_TIMEOUT_S = 600


def missing_packages() -> tuple[str, ...]:
    """Debian packages that have to be installed before hosts can run."""
    missing = {package for program, package in PROGRAMS.items() if _find(program) is None}
    if not _KEYRING.exists():
        missing.add(_KEYRING_PACKAGE)
    return tuple(sorted(missing))


def reasons(state_dir: Path) -> tuple[str, ...]:
    """Why this machine cannot run hosts; empty if it can. One short line each, fit to be shown as they are.

    Args:
        state_dir: where disks would be kept; an overlay is tried there.
    """
    if os.name != "posix" or not Path("/proc/self/ns").is_dir():
        return ("this is not Linux",)
    if os.geteuid() != 0:
        return ("instance hosts need root",)
    found = [f"the kernel has no {name} namespaces" for name in ("net", "mnt", "pid", "time") if not _has(name)]
    if not _works(["unshare", "--net", "--mount", "--pid", "--fork", "true"]):
        found.append("namespaces cannot be made here (a container without privileges?)")
    missing = missing_packages()
    if missing and _find("apt-get") is None:
        found.append(f"programs are missing and there is no apt-get to install them: {', '.join(missing)}")
    if not found and not missing:
        found += _kernel_reasons(state_dir)
    return tuple(found)


def prepare(state_dir: Path, progress: Callable[[str], None] = _log.info) -> tuple[str, ...]:
    """Install what is missing where that is possible, then say why hosts still cannot run (empty if they can)."""
    found = reasons(state_dir)
    missing = missing_packages()
    if found or not missing:
        return found
    progress(f"Installing {', '.join(missing)}")
    try:
        install(missing)
    except CannotRunError as error:
        return (error.message,)
    return reasons(state_dir)


def refusal(why: tuple[str, ...]) -> CannotRunError:
    """HPC856: hosts are wanted and cannot be had, for these reasons."""
    return CannotRunError(
        f"instance hosts cannot run here: {'; '.join(why)}",
        code="HPC856",
        fix="mend that, or go without them: `hpc local start --no-hosts`",
    )


def install(packages: tuple[str, ...]) -> None:
    """Install Debian packages.

    Raises:
        CannotRunError: HPC855, apt-get failed.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install_command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "--quiet"], install_command):
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_APT_TIMEOUT_S, check=False
        )
        if done.returncode and command is install_command:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise CannotRunError(
                f"{', '.join(packages)} could not be installed: {last}",
                code="HPC855",
                fix=f"install them by hand: apt-get install {' '.join(packages)}",
            )


def _kernel_reasons(state_dir: Path) -> list[str]:
    found = []
    if not _works(["unshare", "--time", "--boottime", "-1", "true"]):
        found.append("time namespaces cannot be made here")
    rule = "table inet t { chain c { type filter hook forward priority 0; ct state established accept; }; }\n"
    ports = "table bridge b { chain c { type filter hook prerouting priority -300; iifname x drop; }; }\n"
    nat = "table ip n { chain c { type nat hook postrouting priority 100; masquerade; }; }\n"
    if not _works(["unshare", "--net", "nft", "-f", "-"], stdin=rule + ports + nat):
        found.append("the kernel has no nftables with connection tracking")
    bridge = "link add b0 type bridge\nlink add v0 type veth peer name v1\n"
    if not _works(["unshare", "--net", "ip", "-batch", "-"], stdin=bridge):
        found.append("the kernel has no bridges or no veth links")
    elif not Path("/proc/sys/net/bridge").is_dir() and not _works(["modprobe", "br_netfilter"]):
        found.append("the kernel cannot filter bridged packets (module br_netfilter)")
    if not _overlay_works(state_dir):
        found.append(f"no overlay file system can be mounted in {state_dir} (is it on an overlay itself?)")
    return found


def _overlay_works(state_dir: Path) -> bool:
    state_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="probe-", dir=state_dir) as folder:
        for name in ("lower", "upper", "work", "root"):
            (Path(folder) / name).mkdir()
        options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work,volatile"
        # In a mount namespace of its own: goes away with the command.
        command = ["unshare", "--mount", "mount", "-t", "overlay", "probe", "-o", options, f"{folder}/root"]
        return _works(command)


def _works(command: list[str], stdin: str | None = None) -> bool:
    try:
        done = subprocess.run(command, input=stdin, text=True, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _has(namespace: str) -> bool:
    return Path(f"/proc/self/ns/{namespace}").exists()


def _find(program: str) -> str | None:
    # A user's PATH often lacks the sbin folders.
    return shutil.which(program) or shutil.which(program, path=os.pathsep.join(_SBIN))
