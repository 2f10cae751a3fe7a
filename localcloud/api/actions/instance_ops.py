"""What happens to instances whoever causes it: an action, the clock, the host itself, or an administrator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from localcloud.api.call import Call
from localcloud.api.driver import Driver
from localcloud.api.hosts_view import host
from localcloud.api.store import Doc
from localcloud.contracts import Host


def start(call: Call, doc: Doc, status: str) -> None:
    """Bring an instance up by way of `status` (Pending or Starting)."""
    doc.update(status=status, stopped_mode="")
    call.store.update("instance", doc)
    boot(call, doc)


def boot(call: Call, *docs: Doc) -> None:
    """Have hosts boot, or the clock pretend it."""
    if not call.cloud.driver.real:
        at = call.now + call.cloud.knobs.instance_start
        call.store.set_timers("instance", [(doc["id"], "started", at) for doc in docs])
        return
    for doc in docs:
        call.after(_starter(host(doc)))


def _starter(machine: Host) -> Callable[[Driver], None]:
    return lambda driver: driver.start(machine)


def stop(call: Call, doc: Doc, *, force: bool, mode: str) -> None:
    """Take an instance down by way of Stopping."""
    doc.update(status="Stopping", stopped_mode=mode)
    call.store.update("instance", doc)
    if call.cloud.driver.real:
        call.after(lambda driver: driver.stop(doc["id"], force=force))
    else:
        call.store.set_timer("instance", doc["id"], "stopped", call.now + call.cloud.knobs.instance_stop)


def reboot(call: Call, doc: Doc, *, force: bool) -> None:
    """Restart a running instance."""
    doc.update(status="Starting")
    call.store.update("instance", doc)
    if call.cloud.driver.real:
        call.after(lambda driver: driver.reboot(doc["id"], force=force))
    else:
        call.store.set_timer("instance", doc["id"], "started", call.now + call.cloud.knobs.instance_start)


def release(call: Call, doc: Doc) -> None:
    """Remove an instance with its primary interface and its own disks; the rest is unbound."""
    store, instance_id = call.store, doc["id"]
    for eni in store.find("eni", {"instance_id": instance_id}):
        if eni["type"] == "Primary" or eni["delete_on_release"]:
            store.delete("eni", eni["id"])
        else:
            eni.update(instance_id="", status="Available")
            store.update("eni", eni)
    for disk in store.find("disk", {"instance_id": instance_id}):
        if disk["delete_with_instance"]:
            store.delete("disk", disk["id"])
        else:
            disk.update(instance_id="", status="Available", device="")
            store.update("disk", disk)
    for eip in store.find("eip", {"instance_id": instance_id}):
        eip.update(instance_id="", instance_type="", status="Available", private_ip="")
        store.update("eip", eip)
    store.delete("instance", instance_id)
    call.after(lambda driver: driver.release(instance_id))
    call.network_changed()


def settle(call: Call, instance_ids: Sequence[str], status: str) -> None:
    """Instances have reached a state that they were on their way to."""
    expected = {"Running": ("Pending", "Starting"), "Stopped": ("Stopping", "Running", "Pending", "Starting")}[status]
    docs = [doc for doc in call.store.get_many("instance", instance_ids) if doc["status"] in expected]
    call.store.change("instance", docs, {"status": status, **({"started": call.now} if status == "Running" else {})})


def reclaim(call: Call, doc: Doc) -> float:
    """Tell a spot instance that it will be taken back.

    Returns:
        When that happens, seconds since 1970.
    """
    at = call.now + call.cloud.knobs.spot_notice
    doc["reclaim_at"] = at
    call.store.update("instance", doc)
    call.store.set_timer("instance", doc["id"], "reclaim", at)
    return float(at)


def locks(doc: Doc) -> dict[str, Any]:
    """Operation locks: a spot instance under notice shows `Recycling`."""
    return {"LockReason": [{"LockReason": "Recycling", "LockMsg": ""}] if doc.get("reclaim_at") else []}


def on_timer(call: Call, instance_ids: Sequence[str], event: str) -> None:
    """A timer of instances has run out."""
    if event in ("started", "stopped"):
        settle(call, instance_ids, "Running" if event == "started" else "Stopped")
        return
    for doc in call.store.get_many("instance", instance_ids):
        if event == "auto_release" or (event == "reclaim" and doc["spot_behavior"] != "Stop"):
            release(call, doc)
        elif event == "reclaim":
            doc["reclaim_at"] = None
            stop(call, doc, force=True, mode="StopCharging")
