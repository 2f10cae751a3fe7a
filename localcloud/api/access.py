"""Who calls, and whether the policies of a RAM role let it: judged by action, for PassRole by resource, too."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from localcloud.api.errors import ApiError
from localcloud.api.store import Store

#: Policies that the cloud itself ships, as far as this project needs them.
SYSTEM_POLICIES: dict[str, list[str]] = {
    "AdministratorAccess": ["*"],
    "AliyunECSFullAccess": ["ecs:*", "vpc:Describe*"],
    "AliyunECSReadOnlyAccess": ["ecs:Describe*", "ecs:List*"],
    "AliyunVPCFullAccess": ["vpc:*"],
    "AliyunVPCReadOnlyAccess": ["vpc:Describe*", "vpc:List*"],
    "AliyunNASFullAccess": ["nas:*"],
    "AliyunNASReadOnlyAccess": ["nas:Describe*", "nas:List*"],
    "AliyunRAMReadOnlyAccess": ["ram:Get*", "ram:List*"],
    "AliyunSTSAssumeRoleAccess": ["sts:AssumeRole"],
    "AliyunBSSReadOnlyAccess": ["bss:Describe*", "bss:Query*", "bss:Get*"],
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The account itself (`role` is None) or a session of a RAM role."""

    access_key_id: str
    account_id: str
    role: str | None = None
    session: str = ""

    @property
    def arn(self) -> str:
        """Resource name of the caller."""
        if self.role is None:
            return f"acs:ram::{self.account_id}:root"
        return f"acs:ram::{self.account_id}:assumed-role/{self.role}/{self.session}"


def system_policy_document(name: str) -> dict[str, Any]:
    """The document of a policy that the cloud ships."""
    return {
        "Version": "1",
        "Statement": [{"Effect": "Allow", "Action": SYSTEM_POLICIES[name], "Resource": "*"}],
    }


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value or []]


def _matches(patterns: list[str], value: str) -> bool:
    return any(fnmatch.fnmatchcase(value.lower(), pattern.lower()) for pattern in patterns)


def _applies(statement: dict[str, Any], action: str, resource: str | None, context: dict[str, str]) -> bool:
    if not _matches(_list(statement.get("Action")), action):
        return False
    if resource is not None and not _matches(_list(statement.get("Resource")), resource):
        return False
    for operator, conditions in (statement.get("Condition") or {}).items():
        for key, wanted in conditions.items():
            if key.lower() not in context:
                continue  # judged at action level: what the request does not carry is not held against it
            values = _list(wanted)
            actual = context[key.lower()]
            if operator == "StringEquals" and actual not in values:
                return False
            if operator == "StringLike" and not _matches(values, actual):
                return False
            if operator == "StringNotEquals" and actual in values:
                return False
    return True


def role_documents(store: Store, role: str) -> list[dict[str, Any]]:
    """The policy documents that are attached to a role."""
    documents = []
    for attachment in store.find("policy_attachment", {"role": role}):
        kind, name = attachment["policy_type"], attachment["policy_name"]
        if kind == "System":
            documents.append(system_policy_document(name))
        elif policy := store.get("policy", name):
            documents.append(json.loads(policy["versions"][policy["default_version"]]["document"]))
    return documents


_OPERATORS: dict[str, Callable[[list[str], str], bool]] = {
    "StringEquals": lambda wanted, value: value in wanted,
    "StringNotEquals": lambda wanted, value: value not in wanted,
    "StringEqualsIgnoreCase": lambda wanted, value: value.lower() in [item.lower() for item in wanted],
    "StringLike": lambda wanted, value: any(fnmatch.fnmatchcase(value, item) for item in wanted),
    "StringNotLike": lambda wanted, value: not any(fnmatch.fnmatchcase(value, item) for item in wanted),
}


def trusts(document: dict[str, Any], provider: str, said: Mapping[str, list[str]]) -> bool:
    """Whether the trust policy of a role lets in who has proven something to an identity provider.

    Args:
        document: the trust policy.
        provider: resource name of the identity provider.
        said: what was proven, by condition key in lower case. A condition on anything else is not met.
    """
    statements = document.get("Statement", [])
    allowed = False
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal")
        federated = _list(principal.get("Federated")) if isinstance(principal, dict) else []
        if not _matches(_list(statement.get("Action")), "sts:AssumeRole") or provider not in federated:
            continue
        if all(
            operator in _OPERATORS and any(_OPERATORS[operator](_list(wanted), value) for value in said.get(key, []))
            for operator, conditions in (statement.get("Condition") or {}).items()
            for key, wanted in ((name.lower(), values) for name, values in conditions.items())
        ):
            if statement.get("Effect") != "Allow":
                return False
            allowed = True
    return allowed


def check(
    store: Store, caller: Caller, action: str, *, resource: str | None = None, context: dict[str, str] | None = None
) -> None:
    """Let the call pass or refuse it.

    Args:
        store: where roles and policies are.
        caller: who calls; the account itself may do everything.
        action: `ecs:RunInstances`.
        resource: resource name to match; None judges by the action alone.
        context: condition keys (lower case) that the request carries.

    Raises:
        ApiError: 403 `Forbidden.RAM` (ECS, VPC) or `NoPermission`.
    """
    if caller.role is None:
        return
    allowed = denied = False
    for document in role_documents(store, caller.role):
        for statement in document.get("Statement", []):
            if _applies(statement, action, resource, context or {}):
                if statement.get("Effect") == "Deny":
                    denied = True
                else:
                    allowed = True
    if allowed and not denied:
        return
    old_style = action.startswith(("ecs:", "vpc:"))
    raise ApiError(
        403,
        "Forbidden.RAM" if old_style else "NoPermission",
        "User not authorized to operate on the specified resource, or this API doesn't support RAM."
        if old_style
        else "You are not authorized to do this action. You should be authorized by RAM.",
        {
            "AccessDeniedDetail": {
                "AuthAction": action,
                "AuthPrincipalType": "AssumedRoleUser",
                "AuthPrincipalOwnerId": caller.account_id,
                "AuthPrincipalDisplayName": f"{caller.role}:{caller.session}",
                "NoPermissionType": "ExplicitDeny" if denied else "ImplicitDeny",
                "PolicyType": "AccountLevelIdentityBasedPolicy",
            }
        },
    )
