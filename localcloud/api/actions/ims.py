"""Identity management: OpenID Connect identity providers, whose tokens STS takes for sessions of roles."""

from __future__ import annotations

import re
from typing import Any

from localcloud.api import oidc
from localcloud.api.call import Call
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, not_found
from localcloud.api.registry import read, write
from localcloud.api.store import Doc

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_CLIENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:/_-]{0,127}")
_FINGERPRINT = re.compile(r"[A-Za-z0-9]{1,128}")


def provider_arn(call: Call, name: str) -> str:
    """Resource name of an identity provider."""
    return f"acs:ram::{call.cloud.account_id}:oidc-provider/{name}"


def _view(call: Call, doc: Doc) -> dict[str, Any]:
    created = iso_seconds(doc["created"])
    return {
        "OIDCProviderName": doc["id"],
        "Arn": provider_arn(call, doc["id"]),
        "IssuerUrl": doc["issuer"],
        "ClientIds": ",".join(doc["client_ids"]),
        "Fingerprints": ",".join(doc["fingerprints"]),
        "Description": doc["description"],
        "IssuanceLimitTime": doc["issuance_limit"],
        "CreateDate": created,
        "UpdateDate": created,
        "GmtCreate": str(int(doc["created"] * 1000)),
        "GmtModified": str(int(doc["created"] * 1000)),
    }


def _need(call: Call, name: str) -> Doc:
    return call.store.need("oidc_provider", name, not_found("EntityNotExist.OIDCProvider", f"OIDC provider {name}"))


def _parts(call: Call, name: str, pattern: re.Pattern[str]) -> list[str]:
    found = [item.strip() for item in call.params.text(name).split(",") if item.strip()]
    if len(found) > 50 or not all(pattern.fullmatch(item) for item in found):
        raise ApiError(400, f"InvalidParameter.{name}", f"The specified {name} is not valid.")
    return list(dict.fromkeys(found))


@write(
    "ims",
    "CreateOIDCProvider",
    "OIDCProviderName! IssuerUrl! ClientIds Fingerprints Description IssuanceLimitTime",
)
def create_provider(call: Call) -> dict[str, Any]:
    """Make an identity provider; its issuer is one of HTTPS, or of this machine."""
    params = call.params
    name, issuer = params.require("OIDCProviderName"), params.require("IssuerUrl")
    if not _NAME.fullmatch(name):
        raise ApiError(400, "InvalidParameter.OIDCProviderName", "The specified OIDCProviderName is not valid.")
    oidc.check_issuer(issuer)
    if call.store.get("oidc_provider", name):
        raise ApiError(409, "EntityAlreadyExists.OIDCProvider", f"The OIDC provider already exists: {name}.")
    if call.store.count("oidc_provider", {"issuer": issuer}):
        raise ApiError(409, "EntityAlreadyExists.OIDCProvider.IssuerUrl", "Another OIDC provider has this issuer.")
    limit = params.number("IssuanceLimitTime", 12, 1, 168)
    doc = {
        "id": name,
        "issuer": issuer,
        "client_ids": _parts(call, "ClientIds", _CLIENT),
        "fingerprints": _parts(call, "Fingerprints", _FINGERPRINT),
        "description": params.text("Description"),
        "issuance_limit": limit,
        "created": call.now,
    }
    call.store.insert("oidc_provider", doc)
    return {"OIDCProvider": _view(call, doc)}


@read("ims", "GetOIDCProvider", "OIDCProviderName!")
def get_provider(call: Call) -> dict[str, Any]:
    """One identity provider."""
    return {"OIDCProvider": _view(call, _need(call, call.params.require("OIDCProviderName")))}


@read("ims", "ListOIDCProviders", "Marker MaxItems")
def list_providers(call: Call) -> dict[str, Any]:
    """All identity providers."""
    views = [_view(call, doc) for doc in call.store.find("oidc_provider")]
    return {"IsTruncated": False, "OIDCProviders": {"OIDCProvider": views}}


@write("ims", "DeleteOIDCProvider", "OIDCProviderName!")
def delete_provider(call: Call) -> dict[str, Any]:
    """Remove an identity provider: its tokens are worth nothing from now on."""
    call.store.delete("oidc_provider", _need(call, call.params.require("OIDCProviderName"))["id"])
    return {}
