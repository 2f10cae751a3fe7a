"""The package mirror against a real HTTP server on this machine."""

from __future__ import annotations

import http.server
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from localcloud.hosts.httpd import Request
from localcloud.hosts.mirror import MirrorService, rewrite_index
from localcloud.hosts.upstreams import Upstreams, archive_urls, read_upstreams


class Upstream(http.server.BaseHTTPRequestHandler):
    files: dict[str, bytes]
    asked: list[str]
    broken: bool

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        body = self.files.get(self.path)
        time.sleep(0.05)  # long enough for the others to come while this one is under way
        self.send_response(404 if body is None else 500 if type(self).broken else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def upstream() -> Iterator[tuple[str, type[Upstream]]]:
    handler = type("Handler", (Upstream,), {"files": {}, "asked": [], "broken": False})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()


def mirror_of(base: str, cache: Path) -> MirrorService:
    return MirrorService(cache, Upstreams(f"{base}/debian", f"{base}/debian-security", f"{base}/simple", None, None))


def ask(mirror: MirrorService, path: str) -> tuple[int, bytes]:
    response = mirror.answer(Request("10.16.0.5", "GET", path, {}, b""))
    return response.status, response.body.read_bytes() if isinstance(response.body, Path) else response.body


def test_many_at_once_are_one_download(upstream: tuple[str, type[Upstream]], tmp_path: Path) -> None:
    base, handler = upstream
    path = "/debian/pool/main/a/a/a_1%2bb~1_amd64.deb"
    handler.files[path] = handler.files["/debian/pool/main/a/a/a_1+b~1_amd64.deb"] = b"x" * 300_000
    mirror = mirror_of(base, tmp_path)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: ask(mirror, path), range(10)))
    assert answers == [(200, b"x" * 300_000)] * 10
    assert len(handler.asked) == 1
    assert ask(mirror_of(base, tmp_path), path)[0] == 200  # kept on disk
    assert len(handler.asked) == 1
    assert not list(tmp_path.rglob("*.part"))


def test_both_archives_and_what_is_missing(upstream: tuple[str, type[Upstream]], tmp_path: Path) -> None:
    base, handler = upstream
    handler.files["/debian-security/dists/s/InRelease"] = b"signed"
    mirror = mirror_of(base, tmp_path)
    assert ask(mirror, "/debian-security/dists/s/InRelease") == (200, b"signed")
    assert ask(mirror, "/debian/dists/s/InRelease")[0] == 404
    assert ask(mirror, "/centos/7/x.rpm") == (404, b"")
    assert ask(mirror, "/debian/../../etc/passwd")[0] == 400
    assert ask(mirror, "/debian/%2e%2e/%2e%2e/etc/passwd")[0] == 400


def test_an_index_is_asked_for_again_but_an_old_one_is_better_than_none(
    upstream: tuple[str, type[Upstream]], tmp_path: Path
) -> None:
    base, handler = upstream
    path = "/debian/dists/bookworm/InRelease"
    handler.files[path] = b"one"
    mirror = mirror_of(base, tmp_path)
    assert ask(mirror, path) == (200, b"one")
    handler.files[path] = b"two"
    assert ask(mirror, path) == (200, b"one")
    old = time.time() - 3600
    os.utime(tmp_path / "debian/dists/bookworm/InRelease", (old, old))
    assert ask(mirror, path) == (200, b"two")
    os.utime(tmp_path / "debian/dists/bookworm/InRelease", (old, old))
    handler.broken = True
    assert ask(mirror, path) == (200, b"two")


def test_python_packages(upstream: tuple[str, type[Upstream]], tmp_path: Path) -> None:
    base, handler = upstream
    index = b'<a href="../../files/my_pkg-1.whl#sha256=00" data-requires-python="&gt;=3">x</a>'
    handler.files["/simple/my-pkg/"] = index
    handler.files["/files/my_pkg-1.whl"] = b"wheel"
    mirror = mirror_of(base, tmp_path)
    host = base.removeprefix("http://")
    assert ask(mirror, f"/pypi/files/http/{host}/files/my_pkg-1.whl")[0] == 404  # no page has named that host
    status, page = ask(mirror, "/pypi/simple/My_Pkg/")
    link = f'<a href="/pypi/files/http/{host}/files/my_pkg-1.whl#sha256=00" data-requires-python="&gt;=3">x</a>'
    assert (status, page.decode()) == (200, link)
    assert ask(mirror, f"/pypi/files/http/{host}/files/my_pkg-1.whl") == (200, b"wheel")
    assert ask(mirror, "/pypi/simple/none/")[0] == 404
    assert ask(mirror, "/pypi/simple/..%2fx/")[0] in (400, 404)


def test_links_that_lead_nowhere_stay() -> None:
    page = '<a href="mailto:a@b">x</a><a\n class="c" HREF=\'https://f.example/p/a%20b.whl?x=1\'>'
    text, hosts = rewrite_index(page, "https://i.example/simple/p/")
    assert text == '<a href="mailto:a@b">x</a><a\n class="c" HREF=\'/pypi/files/https/f.example/p/a%20b.whl\'>'
    assert hosts == {"https://f.example"}


def test_apt_sources_in_both_formats() -> None:
    text = (
        "# deb http://off.example/debian x main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://one.example/debian/ bookworm main\n"
        "Types: deb\nURIs: http://two.example/debian-security http://three.example/x\nSuites: s\n"
    )
    assert archive_urls(text) == (
        "http://one.example/debian",
        "http://two.example/debian-security",
        "http://three.example/x",
    )


def test_upstreams_come_from_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_CERT", raising=False)
    (tmp_path / "apt/sources.list.d").mkdir(parents=True)
    assert read_upstreams(tmp_path).debian == "http://deb.debian.org/debian"
    (tmp_path / "apt/sources.list.d/a.sources").write_text("URIs: http://near.example/mirror/debian\n")
    (tmp_path / "apt/sources.list").write_text("deb cdrom:[Debian]/debian bookworm main\n")
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://py.example/simple/\n")
    found = read_upstreams(tmp_path)
    assert (found.debian, found.pypi) == ("http://near.example/mirror/debian", "https://py.example/simple")
    assert found.security == "http://deb.debian.org/debian-security"
