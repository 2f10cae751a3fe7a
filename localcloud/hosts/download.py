"""Files from the outside, kept on disk: many that want the same one at once cause one download."""

from __future__ import annotations

import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 60
_CHUNK = 1 << 18


class UpstreamError(Exception):
    """The outside answered with an error status, or not at all (502)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file on disk and the URL that it came from in the end."""

    path: Path
    url: str


Fetch = Callable[[str, Path, dict[str, str]], None]


class DownloadCache:
    """Folder of downloads.

    Args:
        folder: where they are kept.
        proxy: proxy for http URLs, or None for what the environment says.
        ca_file: file of trusted certificates, or None for the system's.
    """

    def __init__(self, folder: Path, *, proxy: str | None = None, ca_file: str | None = None) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        handlers: list[urllib.request.BaseHandler] = [
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file))
        ]
        if proxy:
            handlers.append(urllib.request.ProxyHandler({"http": proxy}))
        self._opener = urllib.request.build_opener(*handlers)
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    def get(self, name: str, url: str, *, max_age_s: float | None, accept: str = "*/*") -> Path:
        """The file kept under `name`; downloaded if it is missing or too old.

        A copy that is too old is still good where the outside cannot be reached.

        Args:
            name: relative path, without `..`.
            url: where it comes from.
            max_age_s: how old it may be in seconds, None for ever.
            accept: value of the Accept header.

        Raises:
            UpstreamError: it cannot be had.
        """
        path = self._folder / name
        with self._one_at_a_time(name):
            if path.exists() and (max_age_s is None or time.time() - path.stat().st_mtime < max_age_s):
                return path
            try:
                self._download(url, path, accept)
            except UpstreamError as error:
                if error.status < 500 or not path.exists():
                    raise
        return path

    def _one_at_a_time(self, name: str) -> _Turn:
        return _Turn(self, name)

    def _download(self, url: str, path: Path, accept: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Several local clouds may share the folder: no two write one temporary file.
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        request = urllib.request.Request(url, headers={"Accept": accept, "User-Agent": "alicloud-hpc-mirror"})  # noqa: S310
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer, part.open("wb") as file:
                expected = answer.headers.get("Content-Length")
                size = 0
                while chunk := answer.read(_CHUNK):
                    file.write(chunk)
                    size += len(chunk)
            if expected is not None and size != int(expected):
                raise UpstreamError(502, f"{url}: {size} bytes of {expected}")
            part.replace(path)
        except urllib.error.HTTPError as error:
            raise UpstreamError(error.code, f"{url}: {error}") from error
        except (OSError, ValueError) as error:
            raise UpstreamError(502, f"{url}: {error}") from error
        finally:
            part.unlink(missing_ok=True)


class _Turn:
    """Lock per name that is forgotten once nobody waits for it."""

    def __init__(self, cache: DownloadCache, name: str) -> None:
        self._cache = cache
        self._name = name

    def __enter__(self) -> None:
        with self._cache._guard:
            lock, users = self._cache._locks.get(self._name, (threading.Lock(), 0))
            self._cache._locks[self._name] = (lock, users + 1)
        lock.acquire()

    def __exit__(self, *_: object) -> None:
        with self._cache._guard:
            lock, users = self._cache._locks[self._name]
            if users == 1:
                del self._cache._locks[self._name]
            else:
                self._cache._locks[self._name] = (lock, users - 1)
        lock.release()
