"""STS: who calls, and sessions of RAM roles."""

from __future__ import annotations

import time
from typing import Any

from localcloud.api import credentials
from localcloud.api.actions.ram import need_role
from localcloud.api.call import Call
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import invalid
from localcloud.api.registry import read, write


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


@write("sts", "AssumeRole", "RoleArn! RoleSessionName! DurationSeconds Policy ExternalId SourceIdentity")
def assume_role(call: Call) -> dict[str, Any]:
    """Temporary credentials of a role."""
    params = call.params
    arn = params.require("RoleArn")
    prefix = f"acs:ram::{call.cloud.account_id}:role/"
    if not arn.startswith(prefix):
        raise invalid("RoleArn")
    wanted = arn.removeprefix(prefix)
    # Resource names of roles are lower case, role names may not be.
    name = next((doc["id"] for doc in call.store.find("role") if doc["id"].lower() == wanted.lower()), wanted)
    role = need_role(call, name)
    session = params.require("RoleSessionName")
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
