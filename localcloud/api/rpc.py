"""From an HTTP request to action, parameters and caller: both signature styles, times, nonces, tokens."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from localcloud.api import signature
from localcloud.api.access import Caller
from localcloud.api.errors import ApiError
from localcloud.api.params import flatten
from localcloud.api.store import Store

#: A request may be this much older or younger than the server's clock, seconds.
MAX_SKEW = 15 * 60
MAX_FIELDS = 4000


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request, taken apart but not yet trusted.

    Attributes:
        method: `GET` or `POST`.
        path: URL path.
        query: parameters of the query.
        form: parameters of the body (form or JSON, flattened).
        headers: lower-case names.
        body_hash: SHA-256 of the raw body, hexadecimal.
    """

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: Mapping[str, str]
    body_hash: str

    @property
    def acs3(self) -> bool:
        """Whether it is signed in the newer style; the Go clients name the action in a header and sign in the older."""
        return self.headers.get("authorization", "").lstrip().startswith("ACS3") or (
            "x-acs-action" in self.headers and "Signature" not in self.parameters
        )

    @property
    def parameters(self) -> dict[str, str]:
        """All parameters; the body wins over the query."""
        return {**self.query, **self.form}

    @property
    def action(self) -> str:
        """Name of the action, or nothing."""
        return self.headers.get("x-acs-action") or self.parameters.get("Action", "")

    @property
    def version(self) -> str:
        """API version, or nothing."""
        return self.headers.get("x-acs-version") or self.parameters.get("Version", "")

    @property
    def wants_xml(self) -> bool:
        """The older style answers XML unless JSON is asked for; the newer one always answers JSON."""
        if self.acs3:
            return False
        return self.parameters.get("Format", "XML").upper() != "JSON"


def parse(method: str, path: str, query: bytes, headers: Mapping[str, str], body: bytes) -> Request:
    """Take a request apart.

    Raises:
        ApiError: 400, the body or the query is not what its type says.
    """
    try:
        in_query = _fields(query)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        form: dict[str, str] = {}
        if body and kind == "application/json":
            document = json.loads(body)
            if not isinstance(document, dict):
                raise ValueError("not an object")
            form = dict(flatten(document))
            for name, value in form.items():
                _check(name, value)
        elif body and kind in ("application/x-www-form-urlencoded", ""):
            form = _fields(body)
        elif body:
            raise ValueError(f"content type {kind}")
    except (ValueError, RecursionError):
        raise ApiError(
            400, "InvalidParameter", "The request is not well formed: its query or body cannot be read."
        ) from None
    if len(form) > MAX_FIELDS:
        raise ApiError(400, "InvalidParameter", "The request has too many parameters.")
    return Request(method, path, in_query, form, headers, hashlib.sha256(body).hexdigest())


def _fields(text: bytes) -> dict[str, str]:
    """Fields of a query or a form.

    Raises:
        ValueError: not UTF-8, too many, a NUL in one, or one given twice.
    """
    pairs = parse_qsl(
        text.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS, encoding="utf-8", errors="strict"
    )
    result: dict[str, str] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"{name} is given twice")
        _check(name, value)
        result[name] = value
    return result


def _check(name: str, value: str) -> None:
    """Refuse what cannot be kept as text: NUL, and halves of surrogate pairs (UnicodeEncodeError)."""
    if "\0" in name or "\0" in value:
        raise ValueError("a NUL")
    name.encode()
    value.encode()


class _Nonces:
    """What was used in the last half hour at least: two sets, of which the older one is thrown away as a whole."""

    def __init__(self) -> None:
        self._old: set[str] = set()
        self._new: set[str] = set()
        self._since = 0.0

    def used(self, nonce: str, now: float) -> bool:
        """Whether it was used before; from now on it was."""
        if now - self._since >= 2 * MAX_SKEW:
            self._old, self._new, self._since = self._new, set(), now
        if nonce in self._old or nonce in self._new:
            return True
        self._new.add(nonce)
        return False


class Authenticator:
    """Checks signatures against the cloud's keys."""

    def __init__(self, store: Store, access_key_id: str, secret: str, account_id: str) -> None:
        self._store = store
        self._key = (access_key_id, secret)
        self._account_id = account_id
        self._nonces = _Nonces()

    def caller(self, request: Request) -> Caller:
        """Who sent the request.

        Raises:
            ApiError: the signature is missing or wrong, the time is off, the nonce was used, the token is no good.
        """
        if request.acs3:
            key_id, text, given, stamp, nonce, token, algorithm = self._acs3(request)
        else:
            key_id, text, given, stamp, nonce, token, algorithm = self._v1(request)
        self._check_time(stamp)
        secret, caller = self._credentials(key_id, token)
        expected = signature.sign_acs3(secret, text) if request.acs3 else signature.sign_v1(secret, text, algorithm)
        if not signature.equal(expected, given):
            raise ApiError(
                400,
                "SignatureDoesNotMatch",
                f"Specified signature is not matched with our calculation. server string to sign is:{text}",
            )
        self._check_nonce(f"{key_id}:{nonce}")
        return caller

    @staticmethod
    def _v1(request: Request) -> tuple[str, str, str, str, str, str, str]:
        parameters = request.parameters
        for name in ("AccessKeyId", "Signature", "SignatureNonce", "Timestamp", "SignatureMethod"):
            if not parameters.get(name):
                code = "IncompleteSignature" if name == "Signature" else f"Missing{name}"
                raise ApiError(400, code, f"{name} is mandatory for this action.")
        method = parameters["SignatureMethod"].upper()
        if method not in ("HMAC-SHA1", "HMAC-SHA256") or parameters.get("SignatureVersion", "1.0") != "1.0":
            raise ApiError(
                400, "InvalidParameter", "The specified SignatureMethod or SignatureVersion is not supported."
            )
        return (
            parameters["AccessKeyId"],
            signature.string_to_sign_v1(request.method, parameters),
            parameters["Signature"],
            parameters["Timestamp"],
            parameters["SignatureNonce"],
            parameters.get("SecurityToken", ""),
            method,
        )

    @staticmethod
    def _acs3(request: Request) -> tuple[str, str, str, str, str, str, str]:
        headers = request.headers
        parsed = signature.parse_acs3(headers.get("authorization", ""))
        nonce, stamp = headers.get("x-acs-signature-nonce", ""), headers.get("x-acs-date", "")
        if parsed is None or not nonce or not stamp:
            raise ApiError(
                400, "IncompleteSignature", "The request signature does not conform to the standards of this cloud."
            )
        key_id, signed, given = parsed
        needed = {"host", "x-acs-action", "x-acs-version", "x-acs-date", "x-acs-signature-nonce"}
        if not needed <= set(signed):
            raise ApiError(400, "IncompleteSignature", "The signature does not cover all mandatory headers.")
        claimed = headers.get("x-acs-content-sha256", request.body_hash)
        if claimed != request.body_hash:
            raise ApiError(400, "SignatureDoesNotMatch", "x-acs-content-sha256 is not the hash of the body.")
        text = signature.string_to_sign_acs3(
            request.method, request.path, request.query.items(), headers, signed, request.body_hash
        )
        return key_id, text, given, stamp, nonce, headers.get("x-acs-security-token", ""), "ACS3"

    @staticmethod
    def _check_time(stamp: str) -> None:
        try:
            at = datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise ApiError(
                400, "InvalidTimeStamp.Format", "Specified time stamp or date value is not well formatted."
            ) from None
        if abs(time.time() - at) > MAX_SKEW:
            raise ApiError(400, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.")

    def _credentials(self, key_id: str, token: str) -> tuple[str, Caller]:
        if key_id == self._key[0]:
            return self._key[1], Caller(key_id, self._account_id)
        found = self._store.credential(key_id)
        if found is None:
            raise ApiError(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
        secret, expected, role, session, expires = found
        if not token:
            raise ApiError(400, "MissingSecurityToken", "SecurityToken is mandatory for this action.")
        if not signature.equal(token, expected):
            raise ApiError(
                400,
                "InvalidSecurityToken.MismatchWithAccessKey",
                "Specified SecurityToken mismatch with the AccessKey.",
            )
        if time.time() >= expires or self._store.get("role", role) is None:
            raise ApiError(400, "InvalidSecurityToken.Expired", "Specified SecurityToken is expired.")
        return secret, Caller(key_id, self._account_id, role, session)

    def _check_nonce(self, nonce: str) -> None:
        if self._nonces.used(nonce, time.time()):
            raise ApiError(400, "SignatureNonceUsed", "Specified signature nonce was used already.")
