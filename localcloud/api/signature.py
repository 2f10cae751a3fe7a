"""Signatures of requests: version 1 (HMAC-SHA1 over the parameters) and ACS3-HMAC-SHA256 (over the whole request)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

_ACS3 = re.compile(r"^ACS3-HMAC-SHA256\s+Credential=([^,]+),\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]+)$")


def encode(text: str) -> str:
    """Percent-encoding of RFC 3986, as the protocol wants it."""
    return quote(text, safe="-_.~")


def canonical_query(items: Iterable[tuple[str, str]]) -> str:
    """Parameters sorted by name, encoded and joined."""
    return "&".join(f"{encode(key)}={encode(value)}" for key, value in sorted(items))


def string_to_sign_v1(method: str, parameters: Mapping[str, str]) -> str:
    """What version 1 signs: the method and every parameter except the signature itself."""
    query = canonical_query((key, value) for key, value in parameters.items() if key != "Signature")
    return f"{method}&%2F&{encode(query)}"


def sign_v1(secret: str, text: str, method: str = "HMAC-SHA1") -> str:
    """Base64 of the keyed hash of `text`; the key is the secret with an ampersand."""
    digest = hashlib.sha256 if method == "HMAC-SHA256" else hashlib.sha1
    return base64.b64encode(hmac.new(f"{secret}&".encode(), text.encode(), digest).digest()).decode()


def parse_acs3(authorization: str) -> tuple[str, tuple[str, ...], str] | None:
    """Access key id, names of signed headers and signature of an ACS3 header; None if it is malformed."""
    match = _ACS3.match(authorization.strip())
    if match is None:
        return None
    return match.group(1).strip(), tuple(match.group(2).strip().lower().split(";")), match.group(3)


def string_to_sign_acs3(
    method: str,
    path: str,
    query: Iterable[tuple[str, str]],
    headers: Mapping[str, str],
    signed: tuple[str, ...],
    body_hash: str,
) -> str:
    """What ACS3 signs: the hash of method, path, query, the signed headers and the hash of the body."""
    lines = "".join(f"{name}:{headers.get(name, '').strip()}\n" for name in signed)
    request = "\n".join((method, path or "/", canonical_query(query), lines, ";".join(signed), body_hash))
    return "ACS3-HMAC-SHA256\n" + hashlib.sha256(request.encode()).hexdigest()


def sign_acs3(secret: str, text: str) -> str:
    """Hexadecimal HMAC-SHA256 of `text` under the secret."""
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def equal(one: str, other: str) -> bool:
    """Comparison that takes the same time wherever the texts differ."""
    return hmac.compare_digest(one.encode(), other.encode())
