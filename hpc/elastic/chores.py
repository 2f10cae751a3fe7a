"""Calls for many instances, in threads beside the daemon's loop; each instance is in one call at a time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from hpc.elastic.ecs import CloudError

log = logging.getLogger(__name__)

_THREADS = 16


class Chores:
    """Work on instances that is under way."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="chore")
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._futures: set[Future[None]] = set()

    def start(self, ids: Iterable[str], size: int, work: Callable[[list[str]], None]) -> int:
        """Do `work` for instances in parts of `size`; those under way are left out. How many were begun."""
        with self._lock:
            fresh = [instance_id for instance_id in ids if instance_id not in self._busy]
            self._busy.update(fresh)
        for start in range(0, len(fresh), size):
            future = self._threads.submit(self._do, fresh[start : start + size], work)
            self._futures.add(future)
            future.add_done_callback(self._futures.discard)
        return len(fresh)

    def settle(self) -> None:
        """Wait for what is under way."""
        while futures := set(self._futures):
            wait(futures)
            self._futures -= futures

    def close(self) -> None:
        """Wait for what is under way and take no more."""
        self._threads.shutdown(wait=True)

    def _do(self, ids: list[str], work: Callable[[list[str]], None]) -> None:
        try:
            work(ids)
        except CloudError as error:
            log.warning("%d instances: %s", len(ids), error)
        except Exception:
            log.exception("%d instances", len(ids))
        finally:
            with self._lock:
                self._busy.difference_update(ids)
