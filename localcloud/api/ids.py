"""Names that the cloud makes up: resource ids, request ids, addresses, keys."""

from __future__ import annotations

import secrets
import string
import uuid

_ALPHABET = string.ascii_lowercase + string.digits
#: A character for every byte (names need to differ, not to be unguessable).
_TABLE = (_ALPHABET * 8)[:256]


def text(length: int) -> str:
    """Random lower-case letters and digits."""
    return "".join(map(_TABLE.__getitem__, secrets.token_bytes(length)))


def resource_id(prefix: str) -> str:
    """A resource id such as `vpc-bp1` and 17 characters."""
    return f"{prefix}-bp1{text(17)}"


def request_id() -> str:
    """A request id, upper case as the real ones."""
    return str(uuid.uuid4()).upper()


def mac() -> str:
    """A MAC address in the range that the cloud uses (00:16:3e)."""
    tail = secrets.token_bytes(3)
    return "00:16:3e:" + ":".join(f"{byte:02x}" for byte in tail)


def access_key(prefix: str = "LTAI5t") -> tuple[str, str]:
    """A random access key id and secret."""
    alphabet = string.ascii_letters + string.digits
    tail = "".join(secrets.choice(alphabet) for _ in range(18))
    return prefix + tail, "".join(secrets.choice(alphabet) for _ in range(30))
