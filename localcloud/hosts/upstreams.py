"""Where this machine gets packages from: its own apt and pip configuration, read at run time."""

from __future__ import annotations

import configparser
import os
import re
from dataclasses import dataclass
from pathlib import Path

from localcloud.hosts.commands import run

_DEBIAN = "http://deb.debian.org/debian"
_SECURITY = "http://deb.debian.org/debian-security"
_PYPI = "https://pypi.org/simple"
_ONE_LINE = re.compile(r"^\s*deb\s+(?:\[[^\]]*\]\s+)?(?P<uri>\S+)\s")
_DEB822 = re.compile(r"^URIs:\s*(?P<uris>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Package sources of this machine.

    Attributes:
        debian: base URL of the Debian archive, without a slash at its end.
        security: base URL of the Debian security archive.
        pypi: base URL of a Python package index (PEP 503).
        apt_proxy: proxy of apt for http URLs, or None.
        ca_file: file of certificates that pip trusts, or None for the system's own.
    """

    debian: str
    security: str
    pypi: str
    apt_proxy: str | None
    ca_file: str | None


def archive_urls(sources: str) -> tuple[str, ...]:
    """URLs in the text of an apt source file, in either format."""
    uris = [found["uri"] for line in sources.splitlines() if (found := _ONE_LINE.match(line))]
    for found in _DEB822.finditer(sources):
        uris += found["uris"].split()
    return tuple(uri.rstrip("/") for uri in uris)


def read_upstreams(etc: Path = Path("/etc")) -> Upstreams:
    """Read the machine's configuration; Debian's and PyPI's own addresses stand in for what it does not say."""
    files = [etc / "apt/sources.list", *sorted((etc / "apt/sources.list.d").glob("*"))]
    urls = [
        url
        for file in files
        if file.suffix in (".list", ".sources") and file.is_file()
        for url in archive_urls(file.read_text(errors="replace"))
    ]
    http = [url for url in urls if url.startswith(("http://", "https://"))]
    pip = _pip_settings(etc)
    return Upstreams(
        debian=next((url for url in http if url.endswith("/debian")), _DEBIAN),
        security=next((url for url in http if url.endswith("/debian-security")), _SECURITY),
        pypi=(os.environ.get("PIP_INDEX_URL") or pip.get("index-url") or _PYPI).rstrip("/"),
        apt_proxy=_apt_proxy(),
        ca_file=os.environ.get("PIP_CERT") or pip.get("cert"),
    )


def _pip_settings(etc: Path) -> dict[str, str]:
    home = Path.home()
    settings: dict[str, str] = {}
    for file in (etc / "pip.conf", home / ".pip/pip.conf", home / ".config/pip/pip.conf"):
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(file)
        except configparser.Error:
            continue
        if parser.has_section("global"):
            settings.update(parser.items("global"))
    return settings


def _apt_proxy() -> str | None:
    """apt's own proxy setting; apt-config prints `proxy='http://...'` or nothing."""
    found = re.search(
        r"proxy='(?P<url>[^']+)'", run(["apt-config", "shell", "proxy", "Acquire::http::Proxy"], check=False)
    )
    return found["url"] if found else None
