"""A small client of a running local cloud: where it is, its keys, and its admin API."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from hpc.errors import CannotRunError, RefusedError
from localcloud.api.record import Record

Charge = Literal["payg", "spot", "*"]


@dataclass(frozen=True, slots=True)
class LocalCloud:
    """A local cloud by its record.

    Attributes:
        record: where it is and its keys.
    """

    record: Record

    @classmethod
    def read(cls, state_dir: Path) -> LocalCloud | None:
        """The cloud that runs on a state folder, or None if none does."""
        record = Record.read(state_dir)
        return cls(record) if record is not None and record.alive() else None

    @property
    def endpoint(self) -> str:
        """`host:port`, the form that SDKs and providers take."""
        return self.record.endpoint

    @property
    def url(self) -> str:
        """`http://host:port`."""
        return self.record.url

    @property
    def console_url(self) -> str:
        """Address of the console page, with the token that opens it."""
        return f"{self.record.url}/?{urlencode({'token': self.record.admin_token})}"

    def request(self, method: str, path: str, body: Any = None, *, timeout: float = 30.0) -> Any:
        """Call the admin API.

        Raises:
            CannotRunError: HPC871, the cloud does not answer.
            RefusedError: HPC872, it refused the request.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310  (the URL is this machine's own, from cloud.json)
            self.record.url + path,
            data=data,
            method=method,
            headers={"X-Local-Token": self.record.admin_token, "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace")[:500]
            raise RefusedError(
                f"the local cloud refused {method} {path}: {detail}", code="HPC872", fix="correct the value"
            ) from None
        except OSError as error:
            raise CannotRunError(
                f"the local cloud at {self.record.url} does not answer: {error}",
                code="HPC871",
                fix="start it with `hpc local start`",
            ) from None
        return json.loads(text) if text[:1] in (b"{", b"[") else text.decode()

    def wait_ready(self, timeout: float = 30.0) -> None:
        """Wait until it answers; `timeout` in seconds.

        Raises:
            CannotRunError: HPC871, it did not in time.
        """
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.request("GET", "/_local/health", timeout=2)
                return
            except CannotRunError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def snapshot(self, *, documents: bool = True) -> dict[str, Any]:
        """Everything that exists: `counts` by kind and, if wanted, the documents under `resources`."""
        result: dict[str, Any] = self.request("GET", f"/_local/snapshot?documents={int(documents)}")
        return result

    def counts(self) -> dict[str, int]:
        """How many resources there are of each kind; empty for an empty cloud."""
        counts: dict[str, int] = self.snapshot(documents=False)["counts"]
        return counts

    def instances(self) -> list[dict[str, Any]]:
        """The last thousand instances, newest first, with their state, price (CNY per hour) and tags."""
        found: list[dict[str, Any]] = self.request("GET", "/_local/instances?limit=1000")["instances"]
        return found

    def knobs(self) -> dict[str, Any]:
        """The knobs as they are."""
        result: dict[str, Any] = self.request("GET", "/_local/knobs")
        return result

    def set(self, **knobs: Any) -> dict[str, Any]:
        """Change knobs by name, for instance `set(nas_creation=0, throttle={"RunInstances": 10})`."""
        result: dict[str, Any] = self.request("PATCH", "/_local/knobs", knobs)
        return result

    def set_stock(self, count: int | None, *, instance_type: str = "*", zone: str = "*", charge: Charge = "*") -> None:
        """How many instances of a type can run at once in a zone; None is without limit."""
        self.request(
            "POST",
            "/_local/stock",
            {"count": count, "instance_type": instance_type, "zone": zone, "charge": charge},
        )

    def set_quota(self, **quotas: int) -> None:
        """Change quotas by name, for instance `set_quota(vcpus=64)`."""
        self.request("PATCH", "/_local/knobs", {"quotas": quotas})

    def fail(
        self,
        action: str,
        code: str,
        *,
        status: int = 500,
        count: int = 1,
        when: Literal["before", "after"] = "before",
    ) -> None:
        """Have the next `count` calls of an action fail; `after` does the work and loses the answer."""
        self.request(
            "POST", "/_local/faults", {"action": action, "code": code, "status": status, "count": count, "when": when}
        )

    def advance_clock(self, seconds: float) -> float:
        """Move the cloud's clock forward; answers its time in seconds since 1970."""
        return float(self.request("POST", "/_local/clock/advance", {"seconds": seconds})["seconds"])

    def now(self) -> float:
        """The cloud's time in seconds since 1970."""
        return float(self.request("GET", "/_local/clock")["seconds"])

    def reclaim(self, instance_id: str, *, notice: float | None = None) -> str:
        """Take a spot instance back after a notice (seconds; five minutes unless given); answers when (UTC)."""
        body: dict[str, Any] = {"instance_id": instance_id}
        if notice is not None:
            body["notice"] = notice
        return str(self.request("POST", "/_local/reclaim", body)["termination_time"])

    def vanish(self, instance_id: str) -> None:
        """Remove an instance behind everybody's back."""
        self.request("POST", "/_local/vanish", {"instance_id": instance_id})

    def expire_credentials(self) -> None:
        """Have all temporary credentials expire now."""
        self.request("POST", "/_local/expire-credentials", {})

    def calls(self, action: str = "", *, since: int = 0) -> list[dict[str, Any]]:
        """The last thousand calls, oldest first; of one action, or after a number, if given."""
        query = urlencode({"action": action, "since": since})
        found: list[dict[str, Any]] = self.request("GET", f"/_local/calls?{query}")["calls"]
        return found

    def metrics(self) -> str:
        """Prometheus metrics."""
        return str(self.request("GET", "/_local/metrics"))
