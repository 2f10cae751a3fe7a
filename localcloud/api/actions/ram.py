"""RAM: roles, policies and what is attached to what."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

from localcloud.api.access import SYSTEM_POLICIES, system_policy_document
from localcloud.api.call import Call
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, not_found
from localcloud.api.registry import read, write
from localcloud.api.store import Doc
from localcloud.api.store.index import ANY

_NAME = re.compile(r"^[A-Za-z0-9.@_-]{1,128}$")


def _document(text: str, code: str) -> str:
    try:
        document = json.loads(text)
        statements = document["Statement"]
        statements = statements if isinstance(statements, list) else [statements]
        well_formed = bool(statements) and all(
            isinstance(item, dict) and item.get("Effect") in ("Allow", "Deny") and "Action" in item
            for item in statements
        )
    except (ValueError, KeyError, TypeError):
        well_formed = False
    if not well_formed or len(text) > 6144:
        raise ApiError(400, code, "The policy document is not valid.")
    return text


def need_role(call: Call, name: str) -> Doc:
    """The role with this name."""
    return call.store.need("role", name, not_found("EntityNotExist.Role", f"role {name}"))


def _need_policy(call: Call, name: str) -> Doc:
    return call.store.need("policy", name, not_found("EntityNotExist.Policy", f"policy {name}"))


def _role_view(call: Call, doc: Doc) -> dict[str, Any]:
    return {
        "RoleId": doc["role_id"],
        "RoleName": doc["id"],
        "RolePrincipalName": f"{doc['id']}@role.{call.cloud.account_id}.onaliyunservice.com",
        "Arn": f"acs:ram::{call.cloud.account_id}:role/{doc['id'].lower()}",
        "Description": doc["description"],
        "AssumeRolePolicyDocument": doc["trust"],
        "MaxSessionDuration": doc["max_session"],
        "CreateDate": iso_seconds(doc["created"]),
        "UpdateDate": iso_seconds(doc["updated"]),
        "IsServiceLinkedRole": False,
        "Tags": {"Tag": [{"Key": key, "Value": value} for key, value in doc["tags"].items()]},
    }


@write(
    "ram",
    "CreateRole",
    "RoleName! AssumeRolePolicyDocument! Description MaxSessionDuration Tag.N.{Key Value}",
)
def create_role(call: Call) -> dict[str, Any]:
    """Make a role."""
    params = call.params
    name = params.require("RoleName")
    if not _NAME.match(name) or len(name) > 64:
        raise ApiError(400, "InvalidParameter.RoleName.InvalidChars", "The parameter RoleName has invalid characters.")
    if call.store.get("role", name):
        raise ApiError(409, "EntityAlreadyExists.Role", f"The role already exists: {name}.")
    doc = {
        "id": name,
        "role_id": str(secrets.randbelow(10**18) + 3 * 10**17),
        "description": params.text("Description"),
        "trust": _document(params.require("AssumeRolePolicyDocument"), "MalformedPolicyDocument"),
        "max_session": params.number("MaxSessionDuration", 3600, 3600, 43_200),
        "created": call.now,
        "updated": call.now,
        "tags": params.tags(),
    }
    call.store.insert("role", doc)
    return {"Role": _role_view(call, doc)}


@read("ram", "GetRole", "RoleName! Language")
def get_role(call: Call) -> dict[str, Any]:
    """One role."""
    return {"Role": _role_view(call, need_role(call, call.params.require("RoleName")))}


@read("ram", "ListRoles", "Marker MaxItems Tag.N.{Key Value}")
def list_roles(call: Call) -> dict[str, Any]:
    """All roles."""
    docs = call.store.find("role", {f"tag:{key}": value or ANY for key, value in call.params.tags().items()})
    return {"IsTruncated": False, "Roles": {"Role": [_role_view(call, doc) for doc in docs]}}


@write("ram", "UpdateRole", "RoleName! NewAssumeRolePolicyDocument NewDescription NewMaxSessionDuration")
def update_role(call: Call) -> dict[str, Any]:
    """Change trust, description and session length of a role."""
    params = call.params
    doc = need_role(call, params.require("RoleName"))
    if "NewAssumeRolePolicyDocument" in params:
        doc["trust"] = _document(params.require("NewAssumeRolePolicyDocument"), "MalformedPolicyDocument")
    if (description := params.optional("NewDescription")) is not None:
        doc["description"] = description
    doc["max_session"] = params.number("NewMaxSessionDuration", doc["max_session"], 3600, 43_200)
    doc["updated"] = call.now
    call.store.update("role", doc)
    return {"Role": _role_view(call, doc)}


@write("ram", "DeleteRole", "RoleName!")
def delete_role(call: Call) -> dict[str, Any]:
    """Delete a role that has no policies."""
    doc = need_role(call, call.params.require("RoleName"))
    if call.store.count("policy_attachment", {"role": doc["id"]}):
        raise ApiError(409, "DeleteConflict.Role.Policy", "The role can not have policies attached while deleted.")
    if call.store.count("instance", {"ram_role": doc["id"]}):
        raise ApiError(409, "DeleteConflict.Role.Instance", "The role is bound to instances.")
    call.store.delete("role", doc["id"])
    return {}


# -- policies ----------------------------------------------------------------------------------------------------


def _policy_view(call: Call, doc: Doc) -> dict[str, Any]:
    return {
        "PolicyName": doc["id"],
        "PolicyType": "Custom",
        "Description": doc["description"],
        "DefaultVersion": doc["default_version"],
        "AttachmentCount": call.store.count("policy_attachment", {"policy_key": f"Custom/{doc['id']}"}),
        "CreateDate": iso_seconds(doc["created"]),
        "UpdateDate": iso_seconds(doc["updated"]),
        "Tags": {"Tag": [{"Key": key, "Value": value} for key, value in doc["tags"].items()]},
    }


def _version_view(doc: Doc, version: str) -> dict[str, Any]:
    item = doc["versions"][version]
    return {
        "VersionId": version,
        "IsDefaultVersion": version == doc["default_version"],
        "PolicyDocument": item["document"],
        "CreateDate": iso_seconds(item["created"]),
    }


@write("ram", "CreatePolicy", "PolicyName! PolicyDocument! Description Tag.N.{Key Value}")
def create_policy(call: Call) -> dict[str, Any]:
    """Make a policy."""
    params = call.params
    name = params.require("PolicyName")
    if not _NAME.match(name):
        raise ApiError(
            400, "InvalidParameter.PolicyName.InvalidChars", "The parameter PolicyName has invalid characters."
        )
    if call.store.get("policy", name) or name in SYSTEM_POLICIES:
        raise ApiError(409, "EntityAlreadyExists.Policy", f"The policy already exists: {name}.")
    doc = {
        "id": name,
        "description": params.text("Description"),
        "default_version": "v1",
        "next_version": 2,
        "versions": {
            "v1": {
                "document": _document(params.require("PolicyDocument"), "MalformedPolicyDocument"),
                "created": call.now,
            }
        },
        "created": call.now,
        "updated": call.now,
        "tags": params.tags(),
    }
    call.store.insert("policy", doc)
    return {"Policy": _policy_view(call, doc)}


@read("ram", "GetPolicy", "PolicyName! PolicyType!")
def get_policy(call: Call) -> dict[str, Any]:
    """A policy with its default version."""
    name = call.params.require("PolicyName")
    if call.params.choice("PolicyType", ("Custom", "System")) == "System":
        if name not in SYSTEM_POLICIES:
            raise not_found("EntityNotExist.Policy", f"policy {name}")
        text = json.dumps(system_policy_document(name))
        return {
            "Policy": {"PolicyName": name, "PolicyType": "System", "DefaultVersion": "v1", "Description": ""},
            "DefaultPolicyVersion": {"VersionId": "v1", "IsDefaultVersion": True, "PolicyDocument": text},
        }
    doc = _need_policy(call, name)
    view = _policy_view(call, doc)
    view["PolicyDocument"] = doc["versions"][doc["default_version"]]["document"]
    return {"Policy": view, "DefaultPolicyVersion": _version_view(doc, doc["default_version"])}


@read("ram", "ListPolicies", "PolicyType Marker MaxItems Tag.N.{Key Value}")
def list_policies(call: Call) -> dict[str, Any]:
    """Policies: one's own and the cloud's."""
    kind = call.params.choice("PolicyType", ("Custom", "System"))
    views: list[dict[str, Any]] = []
    if kind in ("", "Custom"):
        tags = {f"tag:{key}": value or ANY for key, value in call.params.tags().items()}
        views += [_policy_view(call, doc) for doc in call.store.find("policy", tags)]
    if kind in ("", "System") and not call.params.tags():
        views += [
            {"PolicyName": name, "PolicyType": "System", "DefaultVersion": "v1", "Description": ""}
            for name in SYSTEM_POLICIES
        ]
    return {"IsTruncated": False, "Policies": {"Policy": views}}


@read("ram", "ListPolicyVersions", "PolicyName! PolicyType!")
def list_policy_versions(call: Call) -> dict[str, Any]:
    """Versions of one's own policy."""
    doc = _need_policy(call, call.params.require("PolicyName"))
    return {"PolicyVersions": {"PolicyVersion": [_version_view(doc, version) for version in doc["versions"]]}}


@read("ram", "GetPolicyVersion", "PolicyName! PolicyType! VersionId!")
def get_policy_version(call: Call) -> dict[str, Any]:
    """One version of one's own policy."""
    doc = _need_policy(call, call.params.require("PolicyName"))
    version = call.params.require("VersionId")
    if version not in doc["versions"]:
        raise not_found("EntityNotExist.Policy.Version", "policy version")
    return {"PolicyVersion": _version_view(doc, version)}


@write("ram", "CreatePolicyVersion", "PolicyName! PolicyDocument! SetAsDefault RotateStrategy")
def create_policy_version(call: Call) -> dict[str, Any]:
    """Add a version to a policy (at most five; the oldest goes if the strategy says so)."""
    params = call.params
    doc = _need_policy(call, params.require("PolicyName"))
    if len(doc["versions"]) >= 5:
        if params.text("RotateStrategy", "None") != "DeleteOldestNonDefaultVersionWhenLimitExceeded":
            raise ApiError(409, "LimitExceeded.Policy.Version", "The policy has too many versions.")
        oldest = next(version for version in doc["versions"] if version != doc["default_version"])
        del doc["versions"][oldest]
    version = f"v{doc['next_version']}"
    doc["next_version"] += 1
    doc["versions"][version] = {
        "document": _document(params.require("PolicyDocument"), "MalformedPolicyDocument"),
        "created": call.now,
    }
    if params.flag("SetAsDefault"):
        doc["default_version"] = version
    doc["updated"] = call.now
    call.store.update("policy", doc)
    return {"PolicyVersion": _version_view(doc, version)}


@write("ram", "SetDefaultPolicyVersion", "PolicyName! VersionId!")
def set_default_policy_version(call: Call) -> dict[str, Any]:
    """Choose the version that counts."""
    doc = _need_policy(call, call.params.require("PolicyName"))
    version = call.params.require("VersionId")
    if version not in doc["versions"]:
        raise not_found("EntityNotExist.Policy.Version", "policy version")
    doc["default_version"] = version
    call.store.update("policy", doc)
    return {}


@write("ram", "DeletePolicyVersion", "PolicyName! VersionId!")
def delete_policy_version(call: Call) -> dict[str, Any]:
    """Delete a version other than the default one."""
    doc = _need_policy(call, call.params.require("PolicyName"))
    version = call.params.require("VersionId")
    if version not in doc["versions"]:
        raise not_found("EntityNotExist.Policy.Version", "policy version")
    if version == doc["default_version"]:
        raise ApiError(409, "DeleteConflict.PolicyVersion.Default", "The default version can not be deleted.")
    del doc["versions"][version]
    call.store.update("policy", doc)
    return {}


@write("ram", "UpdatePolicyDescription", "PolicyName! NewDescription!")
def update_policy_description(call: Call) -> dict[str, Any]:
    """Change the description."""
    doc = _need_policy(call, call.params.require("PolicyName"))
    doc["description"] = call.params.text("NewDescription")
    call.store.update("policy", doc)
    return {"Policy": _policy_view(call, doc)}


@write("ram", "DeletePolicy", "PolicyName! CascadingDelete")
def delete_policy(call: Call) -> dict[str, Any]:
    """Delete a policy that is attached to nothing."""
    doc = _need_policy(call, call.params.require("PolicyName"))
    if call.store.count("policy_attachment", {"policy_key": f"Custom/{doc['id']}"}):
        raise ApiError(409, "DeleteConflict.Policy.Role", "The policy is attached to a role.")
    if len(doc["versions"]) > 1 and not call.params.flag("CascadingDelete"):
        raise ApiError(409, "DeleteConflict.Policy.Version", "The policy has other versions.")
    call.store.delete("policy", doc["id"])
    return {}


# -- attachments -------------------------------------------------------------------------------------------------


def _attachment(call: Call) -> tuple[Doc, str, str]:
    role = need_role(call, call.params.require("RoleName"))
    kind, name = call.params.choice("PolicyType", ("Custom", "System")), call.params.require("PolicyName")
    if kind == "Custom":
        _need_policy(call, name)
    elif name not in SYSTEM_POLICIES:
        raise not_found("EntityNotExist.Policy", f"policy {name}")
    return role, kind, name


@write("ram", "AttachPolicyToRole", "RoleName! PolicyType! PolicyName!")
def attach_policy(call: Call) -> dict[str, Any]:
    """Attach a policy to a role."""
    role, kind, name = _attachment(call)
    key = f"{role['id']}/{kind}/{name}"
    if call.store.get("policy_attachment", key):
        raise ApiError(409, "EntityAlreadyExists.Role.Policy", "The policy is already attached to the role.")
    call.store.insert(
        "policy_attachment",
        {
            "id": key,
            "role": role["id"],
            "policy_key": f"{kind}/{name}",
            "policy_type": kind,
            "policy_name": name,
            "created": call.now,
            "tags": {},
        },
    )
    return {}


@write("ram", "DetachPolicyFromRole", "RoleName! PolicyType! PolicyName!")
def detach_policy(call: Call) -> dict[str, Any]:
    """Detach a policy from a role."""
    role, kind, name = _attachment(call)
    key = f"{role['id']}/{kind}/{name}"
    call.store.need("policy_attachment", key, not_found("EntityNotExist.Role.Policy", "attachment"))
    call.store.delete("policy_attachment", key)
    return {}


@read("ram", "ListPoliciesForRole", "RoleName!")
def list_policies_for_role(call: Call) -> dict[str, Any]:
    """Policies of a role."""
    role = need_role(call, call.params.require("RoleName"))
    views = []
    for item in call.store.find("policy_attachment", {"role": role["id"]}):
        policy = call.store.get("policy", item["policy_name"]) or {}
        views.append(
            {
                "PolicyName": item["policy_name"],
                "PolicyType": item["policy_type"],
                "DefaultVersion": policy.get("default_version", "v1"),
                "Description": policy.get("description", ""),
                "AttachDate": iso_seconds(item["created"]),
            }
        )
    return {"Policies": {"Policy": views}}


@read("ram", "ListEntitiesForPolicy", "PolicyName! PolicyType!")
def list_entities_for_policy(call: Call) -> dict[str, Any]:
    """Roles that a policy is attached to."""
    kind, name = call.params.choice("PolicyType", ("Custom", "System")), call.params.require("PolicyName")
    found = call.store.find("policy_attachment", {"policy_key": f"{kind}/{name}"})
    roles = []
    for item in found:
        role = need_role(call, item["role"])
        roles.append(
            {
                "RoleName": role["id"],
                "RoleId": role["role_id"],
                "Arn": f"acs:ram::{call.cloud.account_id}:role/{role['id'].lower()}",
                "Description": role["description"],
                "AttachDate": iso_seconds(item["created"]),
            }
        )
    return {"Roles": {"Role": roles}, "Users": {"User": []}, "Groups": {"Group": []}}
