"""Prometheus metrics of the server."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from localcloud.api.store import Store


class Metrics:
    """Counters of one server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.registry = CollectorRegistry()
        self.calls = Counter(
            "localcloud_api_calls_total", "API calls.", ("product", "action", "code"), registry=self.registry
        )
        self.seconds = Histogram(
            "localcloud_api_call_seconds",
            "Time the server worked on a call.",
            ("product", "action"),
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2),
            registry=self.registry,
        )
        self._resources = Gauge("localcloud_resources", "Resources by kind.", ("kind",), registry=self.registry)

    def text(self) -> bytes:
        """Exposition format."""
        self._resources.clear()
        for kind, count in self._store.counts().items():
            self._resources.labels(kind).set(count)
        return generate_latest(self.registry)
