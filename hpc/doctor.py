"""What is installed on this machine, what is missing, and how to get it."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from hpc.engine.cli import cached_cli, find_cli, version_of
from hpc.engine.language import find_language_host
from hpc.engine.plugins import find_plugins
from hpc.engine.versions import MINIMUM, VERSION


class Need(StrEnum):
    """How badly something is needed: for clusters on the real cloud, or only for more comfort or the local cloud."""

    REQUIRED = "required"
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked for.

    Attributes:
        name: what it is.
        need: required or optional.
        present: whether it is there, in a version that works.
        found: version or place.
        purpose: what it is for.
        remedy: how to get it.
    """

    name: str
    need: Need
    present: bool
    found: str
    purpose: str
    remedy: str

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


def diagnose() -> tuple[Check, ...]:
    """Look for everything; changes nothing."""
    return (_python(), _cli(), *_plugins(), _language_host(), _ssh(), _credentials(), _hosts())


def _python() -> Check:
    version = sys.version.split()[0]
    return Check(
        "Python", Need.REQUIRED, sys.version_info >= (3, 11), version, "the program", "install Python 3.11 or newer"
    )


def _cli() -> Check:
    found = find_cli()
    version = (version_of(found) or "?") if found else f"none of version {MINIMUM} or newer"
    where = "" if found is None else (" (made by the project)" if found == cached_cli() else f" ({found})")
    return Check(
        "Pulumi CLI",
        Need.REQUIRED,
        found is not None,
        version + where,
        "previews and deployments",
        f"`python -m hpc.engine path` downloads or builds {VERSION}; or https://www.pulumi.com/docs/install/",
    )


def _plugins() -> tuple[Check, ...]:
    return tuple(
        Check(
            f"Plugin {plugin.name} {plugin.version}",
            Need.REQUIRED,
            plugin.path is not None,
            str(plugin.path or "missing (the local cloud has a stand-in)"),
            "the cloud's resources" if plugin.name == "alicloud" else "bootstrapping hosts",
            plugin.remedy,
        )
        for plugin in find_plugins()
    )


def _language_host() -> Check:
    found = find_language_host()
    return Check(
        "Python language host",
        Need.OPTIONAL,
        found is not None,
        str(found or "missing"),
        "plain `pulumi up` (`hpc up` does without)",
        "`hpc local env` unpacks it where its archive lies; it comes with an installed Pulumi CLI",
    )


def _ssh() -> Check:
    missing = [tool for tool in ("ssh", "ssh-keygen") if not shutil.which(tool)]
    return Check(
        "OpenSSH client",
        Need.REQUIRED,
        not missing,
        "missing: " + ", ".join(missing) if missing else str(shutil.which("ssh")),
        "keys, and logging in",
        "install openssh-client (Debian, Ubuntu) or openssh-clients (Rocky, Alibaba Cloud Linux)",
    )


def _credentials() -> Check:
    names = ("ALICLOUD_ACCESS_KEY", "ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABACLOUD_ACCESS_KEY_ID", "ALICLOUD_PROFILE")
    name = next((name for name in names if os.environ.get(name)), None)
    profile = Path.home() / ".aliyun" / "config.json"
    found = name or (str(profile) if profile.exists() else "none")
    return Check(
        "Alibaba Cloud credentials",
        Need.OPTIONAL,
        found != "none",
        found,
        "deployments to the real cloud (validating, planning and the local cloud need none)",
        "`aliyun configure`, or set ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    )


def _hosts() -> Check:
    from hpc.deploy.local import cloud_dir
    from localcloud.hosts.support import reasons

    try:
        found = reasons(cloud_dir())
    except OSError as error:
        found = (f"{error.filename or cloud_dir()} cannot be written to ({error.strerror})",)
    return Check(
        "Hosts of the local cloud",
        Need.OPTIONAL,
        not found,
        "; ".join(found) or "possible",
        "instances that are real Linux hosts (API only otherwise)",
        "run as root on a Linux machine that lets you make namespaces and mounts",
    )
