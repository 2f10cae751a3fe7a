"""STS: who calls, and sessions of RAM roles, for callers with keys and for jobs with a token of their CI system."""

from __future__ import annotations

import json
import time
from typing import Any

from localcloud.api import access, credentials
from localcloud.api.actions.ims import provider_arn
from localcloud.api.actions.ram import need_role
from localcloud.api.call import Call, Cloud
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, invalid
from localcloud.api.params import Params
from localcloud.api.registry import action, read, write
from localcloud.api.store import Doc


@read("sts", "GetCallerIdentity", "")
def get_caller_identity(call: Call) -> dict[str, Any]:
    """Account and principal of the caller."""
    caller = call.caller
    role = caller.role
    return {
        "AccountId": caller.account_id,
        "Arn": caller.arn,
        "IdentityType": "Account" if role is None else "AssumedRoleUser",
        "PrincipalId": caller.account_id if role is None else f"{role}:{caller.session}",
        "UserId": caller.account_id,
        "RoleId": "" if role is None else role,
    }


def _role(call: Call) -> Doc:
    arn = call.params.require("RoleArn")
    prefix = f"acs:ram::{call.cloud.account_id}:role/"
    if not arn.startswith(prefix):
        raise invalid("RoleArn")
    wanted = arn.removeprefix(prefix)
    # Resource names of roles are lower case, role names may not be.
    name = next((doc["id"] for doc in call.store.find("role") if doc["id"].lower() == wanted.lower()), wanted)
    return need_role(call, name)


def _session(call: Call, role: Doc) -> dict[str, Any]:
    params = call.params
    if "Policy" in params:
        raise ApiError(400, "UnsupportedOperation", "This cloud cannot narrow a session by a policy.")
    name, session = role["id"], params.require("RoleSessionName")
    if not 2 <= len(session) <= 64 or not all(item.isalnum() or item in ".@-_" for item in session):
        raise invalid("RoleSessionName")
    seconds = params.number("DurationSeconds", 3600, 900, role["max_session"])
    made = credentials.issue(call.store, role=name, session=session, now=time.time(), lifetime=seconds)
    return {
        "Credentials": {
            "AccessKeyId": made.access_key_id,
            "AccessKeySecret": made.secret,
            "SecurityToken": made.token,
            "Expiration": iso_seconds(made.expires),
        },
        "AssumedRoleUser": {
            "Arn": f"acs:ram::{call.cloud.account_id}:assumed-role/{name}/{session}",
            "AssumedRoleId": f"{role['role_id']}:{session}",
        },
    }


@write("sts", "AssumeRole", "RoleArn! RoleSessionName! DurationSeconds Policy ExternalId SourceIdentity")
def assume_role(call: Call) -> dict[str, Any]:
    """Temporary credentials of a role."""
    return _session(call, _role(call))


# -- with a token of an identity provider ------------------------------------------------------------------------


def _provider_name(cloud: Cloud, params: Params) -> str:
    return params.text("OIDCProviderArn").removeprefix(f"acs:ram::{cloud.account_id}:oidc-provider/")


def _warm(cloud: Cloud, params: Params) -> None:
    """Get the keys of the issuer, which may take a while, before the work that others wait for."""
    if provider := cloud.store.get("oidc_provider", _provider_name(cloud, params)):
        cloud.issuers.warm(provider["issuer"])


@action(
    "sts",
    "AssumeRoleWithOIDC",
    "OIDCProviderArn! RoleArn! OIDCToken! RoleSessionName! DurationSeconds Policy SourceIdentity",
    write=True,
    anonymous=True,
    prepare=_warm,
)
def assume_role_with_oidc(call: Call) -> dict[str, Any]:
    """Temporary credentials of a role for who has a token that its trust policy accepts; nothing is signed."""
    token = call.params.require("OIDCToken")
    if not 4 <= len(token) <= 20_000:
        raise invalid("OIDCToken")
    provider = call.store.need(
        "oidc_provider",
        _provider_name(call.cloud, call.params),
        ApiError(401, "AuthenticationFail.NoPermission", "No such OIDC Provider registered."),
    )
    role = _role(call)
    claims = call.cloud.issuers.claims(token, provider)
    audiences = [claims["aud"]] if isinstance(claims["aud"], str) else [str(item) for item in claims["aud"]]
    said = {"oidc:iss": [str(claims["iss"])], "oidc:aud": audiences, "oidc:sub": [str(claims["sub"])]}
    if not access.trusts(json.loads(role["trust"]), provider_arn(call, provider["id"]), said):
        raise ApiError(
            403,
            "NoPermission",
            "You are not authorized to do this action. You should be authorized by RAM.",
            {
                "AccessDeniedDetail": {
                    "AuthAction": "sts:AssumeRoleWithOIDC",
                    "AuthPrincipalType": "Federated",
                    "AuthPrincipalOwnerId": call.cloud.account_id,
                    "AuthPrincipalDisplayName": said["oidc:sub"][0],
                    "NoPermissionType": "ImplicitDeny",
                    "PolicyType": "AssumeRolePolicy",
                }
            },
        )
    return {
        **_session(call, role),
        "OIDCTokenInfo": {
            "Subject": said["oidc:sub"][0],
            "Issuer": said["oidc:iss"][0],
            "ClientIds": ",".join(audiences),
            "IssuanceTime": iso_seconds(float(claims["iat"])),
            "ExpirationTime": iso_seconds(float(claims["exp"])),
            "VerificationInfo": "Success",
        },
    }
