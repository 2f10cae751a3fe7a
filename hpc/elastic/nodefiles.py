"""Files on shared storage: reasons that nodes leave there, and the names of living nodes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from hpc.elastic.instances import Instance
from hpc.elastic.reasons import REASON_LENGTH, printable
from hpc.elastic.tags import parse_node_name

log = logging.getLogger(__name__)


def reported(folder: Path | None) -> dict[str, str]:
    """Reasons that nodes left as `<node>.failed`, one printable line each; what cannot be read is passed over."""
    found: dict[str, str] = {}
    if folder is None:
        return found
    try:
        for file in folder.glob("*.failed"):
            if parse_node_name(file.stem):
                with file.open(encoding="utf-8", errors="replace") as opened:
                    found[file.stem] = printable(opened.read(4 * REASON_LENGTH)) or "no reason was given"
    except OSError as error:
        log.info("%s: %s", folder, error)
    return found


def forget(folder: Path | None, nodes: Iterable[str]) -> None:
    """Remove what nodes left in an earlier life."""
    if folder is None:
        return
    for node in nodes:
        try:
            (folder / f"{node}.failed").unlink(missing_ok=True)
        except OSError as error:
            log.info("%s: %s", node, error)


def write_hosts(file: Path | None, instances: Iterable[Instance]) -> None:
    """`IP name` lines of living nodes, for name resolution on the nodes; written only when they change.

    A node that was replaced may have two instances for a while: its name is that of the younger one.
    """
    if file is None or not file.parent.is_dir():
        return
    addresses: dict[str, str] = {}
    for instance in sorted(instances, key=lambda instance: (instance.created, instance.id)):
        if instance.address and parse_node_name(instance.name):
            addresses[instance.name] = instance.address
    text = "".join(sorted(f"{address} {name}\n" for name, address in addresses.items()))
    try:
        if file.exists() and file.read_text(encoding="ascii") == text:
            return
        part = file.with_name(f".{file.name}.part")
        part.write_text(text, encoding="ascii")
        part.replace(file)
    except OSError as error:
        log.warning("%s: %s", file, error)
