"""Tokens of OpenID Connect issuers (CI systems): their public keys, signature, times and audience."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import jwt

from localcloud.api.errors import ApiError

_ALGORITHMS = ["RS256", "RS384", "RS512", "ES256", "ES384", "PS256"]
_TIMEOUT = 3.0
_MAX_ANSWER = 1 << 20
#: Keys are taken from the cache for this long; what could not be had is not asked for again so soon. Seconds.
_FRESH, _RETRY = 300.0, 5.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _error(what: str, message: str) -> ApiError:
    return ApiError(401, f"AuthenticationFail.OIDCToken.{what}", message)


def check_issuer(url: str) -> None:
    """Refuse an address that cannot be an issuer. Without TLS only addresses of this machine are taken.

    Raises:
        ApiError: `InvalidParameter.IssuerUrl`.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host, parts = "", urlsplit("")
    secure = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    if not host or not secure or parts.query or parts.fragment or "@" in parts.netloc or len(url) > 255:
        raise ApiError(400, "InvalidParameter.IssuerUrl", "The specified IssuerUrl is not valid.")


class Issuers:
    """Public keys of issuers, fetched when they are needed and kept for a while."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, list[jwt.PyJWK] | None]] = {}

    def warm(self, issuer: str) -> None:
        """Have the keys of an issuer at hand; asks it if need be, for some seconds at most."""
        at, keys = self._kept.get(issuer, (0.0, None))
        if time.monotonic() - at < (_RETRY if keys is None else _FRESH) and at:
            return
        try:
            found: list[jwt.PyJWK] | None = _fetch(issuer)
        except (OSError, ValueError, KeyError, TypeError, jwt.PyJWTError):
            found = None
        self._kept[issuer] = (time.monotonic(), found)

    def claims(self, token: str, provider: Mapping[str, Any]) -> dict[str, Any]:
        """What a token says, once it is proven that the issuer says so.

        Args:
            token: as the job got it.
            provider: document of the identity provider: `issuer`, `client_ids`, `issuance_limit` in hours or None.

        Raises:
            ApiError: 401, with what is wrong about the token.
        """
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise _error("Invalid", f"The Jwt content is invalid that cannot be recognized: {error}.") from None
        if header.get("alg") not in _ALGORITHMS:
            raise _error("Invalid", "The algorithm that be specified in Jwt header is unknown.")
        issuer = str(provider["issuer"])
        self.warm(issuer)
        keys = self._kept[issuer][1]
        if keys is None:
            raise _error("IssuerConfigurationBroken", f"Get public keys from {issuer} failed.")
        fitting = [key for key in keys if header.get("kid") in (None, key.key_id)]
        if not fitting:
            raise _error("InvalidSignature", "OIDC token validate failed: no such key.")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                fitting[0],
                algorithms=_ALGORITHMS,
                audience=list(provider["client_ids"]),
                issuer=issuer,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
                leeway=30,
            )
        except jwt.ExpiredSignatureError:
            raise _error("Expired", "This JsonWebToken is expired.") from None
        except jwt.InvalidAudienceError:
            raise _error("AudienceNotMatch", "Invalid audience.") from None
        except jwt.InvalidSignatureError:
            raise _error("InvalidSignature", "OIDC token validate failed: invalid signature.") from None
        except jwt.PyJWTError as error:
            raise _error("Invalid", f"The Jwt content is invalid: {error}.") from None
        limit = provider.get("issuance_limit")
        if limit and time.time() - float(claims["iat"]) > limit * 3600:
            raise _error("Invalid", "The Jwt was issued too long ago.")
        return claims


def _fetch(issuer: str) -> list[jwt.PyJWK]:
    configuration = _get(issuer.rstrip("/") + "/.well-known/openid-configuration")
    address = str(configuration["jwks_uri"])
    check_issuer(address)
    return list(jwt.PyJWKSet.from_dict(_get(address)).keys)


def _get(address: str) -> dict[str, Any]:
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(address, timeout=_TIMEOUT) as answer:  # the scheme was checked by `check_issuer`
        document: dict[str, Any] = json.loads(answer.read(_MAX_ANSWER))
    return document


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """An issuer that sends elsewhere is not followed: the other place was not checked."""
        return
