"""Package mirror of the cloud, `mirrors.cloud.aliyuncs.com`: this machine's own package sources, cached on disk.

| path | from |
|---|---|
| `/debian/...`, `/debian-security/...` | the archives in this machine's apt sources |
| `/pypi/simple/<project>/` | this machine's Python package index; links lead to `/pypi/files/` |
| `/pypi/files/<scheme>/<host>/...` | files of hosts that an index page has named |

Ten hosts that install the same packages download them once; a second cluster downloads nothing.
"""

from __future__ import annotations

import html
import json
import re
import threading
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

from localcloud.hosts.download import DownloadCache, UpstreamError
from localcloud.hosts.httpd import Request, Response
from localcloud.hosts.upstreams import Upstreams

_INDEX_AGE_S = 300.0
_LINK = re.compile(r"""(<a\b[^>]*?\bhref\s*=\s*)(["'])(.*?)\2""", re.IGNORECASE | re.DOTALL)
_PROJECT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_FILES = "/pypi/files/"
_HTML = "application/vnd.pypi.simple.v1+html, text/html;q=0.5"


class MirrorService:
    """The mirror; one for all VPCs.

    Args:
        cache: folder of downloads.
        upstreams: package sources of this machine.
    """

    def __init__(self, cache: Path, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._downloads = DownloadCache(cache, proxy=upstreams.apt_proxy, ca_file=upstreams.ca_file)
        self._known = cache / "pypi-hosts.json"
        self._guard = threading.Lock()

    def answer(self, request: Request) -> Response:
        """Answer one request of a host."""
        path = unquote(request.path)
        parts = [part for part in path.split("/") if part]
        if request.method not in ("GET", "HEAD"):
            return Response(HTTPStatus.METHOD_NOT_ALLOWED)
        if any(part in (".", "..") or "\0" in part for part in parts):
            return Response(HTTPStatus.BAD_REQUEST)
        try:
            match parts:
                case ["debian", _, *_]:
                    return self._archive(self._upstreams.debian, parts)
                case ["debian-security", _, *_]:
                    return self._archive(self._upstreams.security, parts)
                case ["pypi", "simple", project] if _PROJECT.fullmatch(project):
                    return self._index(project)
                case ["pypi", "files", scheme, host, _, *_]:
                    return self._file(scheme, host, parts)
        except UpstreamError as error:
            return Response(error.status, f"{error}\n".encode())
        return Response(HTTPStatus.NOT_FOUND)

    def _archive(self, base: str, parts: list[str]) -> Response:
        below = "/".join(parts)
        url = f"{base}/{quote('/'.join(parts[1:]), safe='/+~:%')}"
        for_ever = parts[-1].endswith(".deb") or "by-hash" in parts
        file = self._downloads.get(below, url, max_age_s=None if for_ever else _INDEX_AGE_S)
        return Response(HTTPStatus.OK, file, "application/octet-stream")

    def _index(self, project: str) -> Response:
        name = re.sub(r"[-_.]+", "-", project).lower()
        url = f"{self._upstreams.pypi}/{name}/"
        page = self._downloads.get(f"pypi/simple/{name}.html", url, max_age_s=_INDEX_AGE_S, accept=_HTML)
        text, hosts = rewrite_index(page.read_text(errors="replace"), url)
        self._remember(hosts)
        return Response(HTTPStatus.OK, text.encode(), "text/html; charset=utf-8")

    def _file(self, scheme: str, host: str, parts: list[str]) -> Response:
        if f"{scheme}://{host}" not in self._hosts():
            return Response(HTTPStatus.NOT_FOUND)
        url = f"{scheme}://{host}/{quote('/'.join(parts[4:]))}"
        file = self._downloads.get("/".join(parts), url, max_age_s=None)
        return Response(HTTPStatus.OK, file, "application/octet-stream")

    def _hosts(self) -> frozenset[str]:
        with self._guard:
            return frozenset(json.loads(self._known.read_text())) if self._known.exists() else frozenset()

    def _remember(self, hosts: frozenset[str]) -> None:
        known = self._hosts()
        if not hosts <= known:
            with self._guard:
                self._known.write_text(json.dumps(sorted(known | hosts)))


def rewrite_index(page: str, url: str) -> tuple[str, frozenset[str]]:
    """An index page of PEP 503 with its links led through the mirror, and the hosts they led to (`scheme://host`)."""
    hosts: set[str] = set()

    def replace(match: re.Match[str]) -> str:
        target = urlsplit(urljoin(url, html.unescape(match[3])))
        if target.scheme not in ("http", "https"):
            return match[0]
        hosts.add(f"{target.scheme}://{target.netloc}")
        fragment = f"#{target.fragment}" if target.fragment else ""
        local = f"{_FILES}{target.scheme}/{target.netloc}{target.path}{fragment}"
        return f"{match[1]}{match[2]}{html.escape(local)}{match[2]}"

    return _LINK.sub(replace, page), frozenset(hosts)
