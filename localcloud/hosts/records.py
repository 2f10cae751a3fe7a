"""What is known of each host between two lives of the API server: one small file per host."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from localcloud.contracts import Host
from localcloud.hosts.processes import Process


@dataclass(frozen=True, slots=True)
class HostRecord:
    """A host and the process that watches over it."""

    host: Host
    loop: Process


class Records:
    """Folder of records; each is replaced as a whole, so a reader never sees half of one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, record: HostRecord) -> None:
        """Keep a record, in place of an older one."""
        path = self._path(record.host.instance_id)
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps({"host": asdict(record.host), "loop": asdict(record.loop)}))
        temporary.replace(path)

    def remove(self, instance_id: str) -> None:
        """Forget a host; an unknown one is not an error."""
        self._path(instance_id).unlink(missing_ok=True)

    def all(self) -> tuple[HostRecord, ...]:
        """All records that can be read."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                values = json.loads(path.read_text())
                host = {**values["host"], "security_group_ids": tuple(values["host"]["security_group_ids"])}
                found.append(HostRecord(Host(**host), Process(**values["loop"])))
            except (ValueError, KeyError, TypeError):
                path.unlink()  # of another version: its host is found by its control group
        return tuple(found)

    def _path(self, instance_id: str) -> Path:
        return self._folder / f"{instance_id}.json"
