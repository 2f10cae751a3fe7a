"""`cloud.json`: where a running cloud is and with which keys it is used. Readable by its owner only."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "cloud.json"


@dataclass(frozen=True, slots=True)
class Record:
    """What a client needs to know.

    Attributes:
        url: `http://127.0.0.1:PORT`.
        endpoint: `127.0.0.1:PORT`.
        pid: process of the server.
        started: start time of that process in clock ticks since boot (tells it from a later one with the same pid).
        access_key_id, access_key_secret: keys of the account.
        admin_token: token of the admin API.
        account_id: 16 digits.
        region: default region.
        hosts: whether instances are real hosts.
        trust_file: certificates that clients must trust for the calls that insist on HTTPS (SSL_CERT_FILE for Go).
    """

    url: str
    endpoint: str
    pid: int
    started: int
    access_key_id: str
    access_key_secret: str
    admin_token: str
    account_id: str
    region: str
    hosts: bool
    trust_file: str

    def write(self, state: Path) -> None:
        """Put the file in place in one step, mode 600."""
        target, part = state / FILE, state / (FILE + ".part")
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as out:
            json.dump(asdict(self), out, indent=1)
        part.replace(target)

    @classmethod
    def read(cls, state: Path) -> Record | None:
        """The record of a state folder, or None if there is none that can be read."""
        try:
            return cls(**json.loads((state / FILE).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def alive(self) -> bool:
        """Whether the recorded process still runs and is the same one."""
        return process_start(self.pid) == self.started


def process_start(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot, or None if it does not run."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])
