"""RAM: roles, policies, attachments of policies to roles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from localcloud.providers.client import Cloud, CloudError
from localcloud.providers.resources.base import Resource, tag_parameters


def _set_tags(cloud: Cloud, kind: str, name: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Make the tags of a role or policy what `new` says; RAM names its resources instead of giving them ids."""
    where = {"ResourceType": kind, "ResourceNames": [name]}
    if gone := sorted(set(old) - set(new)):
        cloud.call("ram", "UntagResources", {**where, "TagKeys": gone})
    if changed := {key: value for key, value in new.items() if old.get(key) != value}:
        cloud.call("ram", "TagResources", {**where, "Tag": tag_parameters(changed)})


class Role(Resource):
    """A RAM role; its id is its name."""

    token = "alicloud:ram/role:Role"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """CreateRole."""
        name = inputs.get("roleName") or inputs.get("name")
        cloud.call(
            "ram",
            "CreateRole",
            {
                "RoleName": name,
                "AssumeRolePolicyDocument": inputs.get("assumeRolePolicyDocument") or inputs.get("document"),
                "Description": inputs.get("description"),
                "MaxSessionDuration": inputs.get("maxSessionDuration"),
            },
        )
        _set_tags(cloud, "role", str(name), {}, inputs.get("tags") or {})
        return str(name)

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """GetRole."""
        try:
            found = cloud.call("ram", "GetRole", {"RoleName": identity})["Role"]
        except CloudError as error:
            if error.not_found:
                return None
            raise
        return {
            "roleName": found["RoleName"],
            "assumeRolePolicyDocument": found.get("AssumeRolePolicyDocument"),
            "description": found.get("Description"),
            "maxSessionDuration": found.get("MaxSessionDuration"),
            "arn": found.get("Arn"),
            "roleId": found.get("RoleId"),
            "createTime": found.get("CreateDate"),
        }

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """UpdateRole."""
        cloud.call(
            "ram",
            "UpdateRole",
            {
                "RoleName": identity,
                "NewAssumeRolePolicyDocument": new.get("assumeRolePolicyDocument") or new.get("document"),
                "NewDescription": new.get("description"),
                "NewMaxSessionDuration": new.get("maxSessionDuration"),
            },
        )
        _set_tags(cloud, "role", identity, old.get("tags") or {}, new.get("tags") or {})

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeleteRole."""
        try:
            cloud.call("ram", "DeleteRole", {"RoleName": identity})
        except CloudError as error:
            if not error.not_found:
                raise


class Policy(Resource):
    """A custom policy; its id is its name."""

    token = "alicloud:ram/policy:Policy"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """CreatePolicy."""
        name = inputs.get("policyName") or inputs.get("name")
        cloud.call(
            "ram",
            "CreatePolicy",
            {
                "PolicyName": name,
                "PolicyDocument": inputs.get("policyDocument") or inputs.get("document"),
                "Description": inputs.get("description"),
            },
        )
        _set_tags(cloud, "policy", str(name), {}, inputs.get("tags") or {})
        return str(name)

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """GetPolicy; the document is that of the default version."""
        try:
            answer = cloud.call("ram", "GetPolicy", {"PolicyName": identity, "PolicyType": "Custom"})
        except CloudError as error:
            if error.not_found:
                return None
            raise
        found = answer["Policy"]
        document = (answer.get("DefaultPolicyVersion") or {}).get("PolicyDocument") or found.get("PolicyDocument")
        return {
            "policyName": found["PolicyName"],
            "policyDocument": document,
            "description": found.get("Description"),
            "type": found.get("PolicyType"),
            "defaultVersion": found.get("DefaultVersion"),
            "attachmentCount": found.get("AttachmentCount"),
            "createTime": found.get("CreateDate"),
        }

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """CreatePolicyVersion as the new default; a policy has at most five versions, so the old default goes."""
        _set_tags(cloud, "policy", identity, old.get("tags") or {}, new.get("tags") or {})
        if all(old.get(name) == new.get(name) for name in ("policyDocument", "document")):
            return
        before = cloud.call("ram", "GetPolicy", {"PolicyName": identity, "PolicyType": "Custom"})
        cloud.call(
            "ram",
            "CreatePolicyVersion",
            {
                "PolicyName": identity,
                "PolicyDocument": new.get("policyDocument") or new.get("document"),
                "SetAsDefault": True,
            },
        )
        version = before["Policy"]["DefaultVersion"]
        cloud.call("ram", "DeletePolicyVersion", {"PolicyName": identity, "VersionId": version})

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeletePolicy, its other versions first."""
        try:
            versions = cloud.call("ram", "ListPolicyVersions", {"PolicyName": identity, "PolicyType": "Custom"})
            for version in versions["PolicyVersions"]["PolicyVersion"]:
                if not version["IsDefaultVersion"]:
                    cloud.call(
                        "ram", "DeletePolicyVersion", {"PolicyName": identity, "VersionId": version["VersionId"]}
                    )
            cloud.call("ram", "DeletePolicy", {"PolicyName": identity})
        except CloudError as error:
            if not error.not_found:
                raise


class RolePolicyAttachment(Resource):
    """A policy attached to a role; its id is `role:<policy>:<type>:<role>`, as the real provider has it."""

    token = "alicloud:ram/rolePolicyAttachment:RolePolicyAttachment"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """AttachPolicyToRole."""
        cloud.call("ram", "AttachPolicyToRole", self._names(inputs))
        return f"role:{inputs['policyName']}:{inputs['policyType']}:{inputs['roleName']}"

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """ListPoliciesForRole."""
        _, policy, kind, role = identity.split(":")
        try:
            answer = cloud.call("ram", "ListPoliciesForRole", {"RoleName": role})
        except CloudError as error:
            if error.not_found:
                return None
            raise
        for found in answer["Policies"]["Policy"]:
            if found["PolicyName"] == policy and found["PolicyType"] == kind:
                return {"policyName": policy, "policyType": kind, "roleName": role}
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Nothing changes in place."""

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DetachPolicyFromRole."""
        _, policy, kind, role = identity.split(":")
        try:
            cloud.call("ram", "DetachPolicyFromRole", {"PolicyName": policy, "PolicyType": kind, "RoleName": role})
        except CloudError as error:
            if not error.not_found:
                raise

    @staticmethod
    def _names(inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "PolicyName": inputs["policyName"],
            "PolicyType": inputs["policyType"],
            "RoleName": inputs["roleName"],
        }


class InstanceRole(Resource):
    """A role bound to an instance; its id is `<role>:<JSON list of instance ids>`, as the real provider has it."""

    token = "alicloud:ecs/ramRoleAttachment:RamRoleAttachment"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """AttachInstanceRamRole."""
        instances = json.dumps([inputs["instanceId"]])
        cloud.call("ecs", "AttachInstanceRamRole", {"RamRoleName": inputs["ramRoleName"], "InstanceIds": instances})
        return f"{inputs['ramRoleName']}:{instances}"

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeInstanceRamRole."""
        role, instances = identity.split(":", 1)
        try:
            answer = cloud.call("ecs", "DescribeInstanceRamRole", {"InstanceIds": instances})
        except CloudError as error:
            if error.not_found:
                return None
            raise
        for found in answer["InstanceRamRoleSets"]["InstanceRamRoleSet"]:
            if found.get("RamRoleName") == role:
                return {"ramRoleName": role, "instanceId": found["InstanceId"]}
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Nothing changes in place."""

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DetachInstanceRamRole."""
        role, instances = identity.split(":", 1)
        try:
            cloud.call("ecs", "DetachInstanceRamRole", {"RamRoleName": role, "InstanceIds": instances})
        except CloudError as error:
            if not error.not_found:
                raise


RESOURCES: tuple[Resource, ...] = (Role(), Policy(), RolePolicyAttachment(), InstanceRole())
