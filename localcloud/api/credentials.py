"""Temporary credentials of RAM roles. They live by real time: their users compare the expiry with their own clocks."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from localcloud.api import ids
from localcloud.api.store import Store


@dataclass(frozen=True, slots=True)
class Temporary:
    """Temporary credentials; `expires` in seconds since 1970."""

    access_key_id: str
    secret: str
    token: str
    expires: float


def issue(store: Store, *, role: str, session: str, now: float, lifetime: float) -> Temporary:
    """Make and keep credentials for a session of a role."""
    key, secret = ids.access_key("STS.N")
    token = "CAIS" + secrets.token_urlsafe(96)
    made = Temporary(key, secret, token, now + lifetime)
    store.add_credential(key, secret, token, role, session, made.expires, now)
    return made
