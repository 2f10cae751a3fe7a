"""Carries committed changes to the machine below, in order, outside of the request.

What has to be done is derived again from the database at every start, so a kill between a commit and its effect loses
nothing.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from localcloud.api import hosts_view
from localcloud.api.store import Doc, Store
from localcloud.contracts import Host, HostBackend, HostState, MetadataSource

_log = logging.getLogger("localcloud.driver")
_PARALLEL = 4

Task = tuple[str, Callable[[], None]]


class Driver:
    """One thread that applies network changes and runs host operations, those of different instances in parallel.

    Args:
        backend: makes hosts real.
        store: the database.
        settled: called (from the driver's threads) with an instance id and its new state once the host is in it.
        vanished: called with an instance id whose host powered itself off or died.
    """

    def __init__(
        self,
        backend: HostBackend,
        store: Store,
        settled: Callable[[str, HostState], None],
        vanished: Callable[[str], None],
    ) -> None:
        self.backend = backend
        self._store = store
        self._settled = settled
        self._vanished = vanished
        self._queue: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="driver", daemon=True)
        self._pool = ThreadPoolExecutor(_PARALLEL, thread_name_prefix="hosts") if backend.real else None

    @property
    def real(self) -> bool:
        """Whether instances are hosts."""
        return self.backend.real

    def begin(self, source: MetadataSource) -> None:
        """Find the hosts that live, bring the machine to what the database says, and start working."""
        if not self.backend.real:
            return
        docs = self._store.find("instance")
        states = self.backend.adopt([hosts_view.host(doc) for doc in docs], source, self._vanished)
        self.network_changed()
        for doc in docs:
            self._reconcile(doc, states.get(doc["id"]))
        self._thread.start()

    def _reconcile(self, doc: Doc, state: HostState | None) -> None:
        alive = state in (HostState.RUNNING, HostState.STARTING, HostState.PENDING)
        if doc["status"] in ("Pending", "Starting"):
            if alive:
                self._settled(doc["id"], HostState.RUNNING)
            else:
                self.start(hosts_view.host(doc))
        elif doc["status"] == "Running" and not alive:
            self._vanished(doc["id"])
        elif doc["status"] == "Stopping" or (doc["status"] == "Stopped" and alive):
            self.stop(doc["id"], force=True)

    def close(self) -> None:
        """Finish what is under way and leave the hosts as they are."""
        if self.backend.real and self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(timeout=30)
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self.backend.close()

    # -- called after a commit ---------------------------------------------------------------------------------

    def _put(self, key: str, task: Callable[[], None]) -> None:
        if self.backend.real:
            self._queue.put((key, task))

    def network_changed(self) -> None:
        """Apply the whole network before any operation that is asked for later."""
        self._put("", lambda: None)

    def start(self, host: Host) -> None:
        """Boot an instance."""

        def task() -> None:
            self.backend.start(host)
            self._settled(host.instance_id, HostState.RUNNING)

        self._put(host.instance_id, task)

    def stop(self, instance_id: str, *, force: bool) -> None:
        """Power an instance off."""

        def task() -> None:
            self.backend.stop(instance_id, force=force)
            self._settled(instance_id, HostState.STOPPED)

        self._put(instance_id, task)

    def reboot(self, instance_id: str, *, force: bool) -> None:
        """Reboot an instance."""

        def task() -> None:
            self.backend.reboot(instance_id, force=force)
            self._settled(instance_id, HostState.RUNNING)

        self._put(instance_id, task)

    def release(self, instance_id: str) -> None:
        """Remove a host."""
        self._put(instance_id, lambda: self.backend.release(instance_id))

    def create_image(self, instance_id: str, image_id: str, done: Callable[[bool], None]) -> None:
        """Copy the disk of an instance; `done` says whether it worked."""

        def task() -> None:
            try:
                self.backend.create_image(instance_id, image_id)
            except Exception:
                done(False)
                raise
            done(True)

        self._put(instance_id, task)

    def delete_image(self, image_id: str) -> None:
        """Forget an image's disk."""
        self._put(image_id, lambda: self.backend.delete_image(image_id))

    def delete_file_system(self, file_system_id: str) -> None:
        """Remove the directory of a file system."""
        self._put(file_system_id, lambda: self.backend.delete_file_system(file_system_id))

    # -- the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            batch: list[Task] = []
            item = self._queue.get()
            while item is not None:
                batch.append(item)
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            if batch:
                self._work(batch)
            if item is None:
                return

    def _work(self, batch: list[Task]) -> None:
        if any(key == "" for key, _ in batch):
            self._safely("network", lambda: self.backend.apply(hosts_view.network(self._store)))
        groups: dict[str, list[Callable[[], None]]] = {}
        for key, task in batch:
            if key:
                groups.setdefault(key, []).append(task)

        def in_order(key: str, tasks: list[Callable[[], None]]) -> None:
            for task in tasks:
                self._safely(key, task)

        assert self._pool is not None  # noqa: S101  (only real backends have work)
        for future in [self._pool.submit(in_order, key, tasks) for key, tasks in groups.items()]:
            future.result()

    @staticmethod
    def _safely(what: str, task: Callable[[], None]) -> None:
        try:
            task()
        except Exception:
            _log.exception("%s: the host operation failed", what)
