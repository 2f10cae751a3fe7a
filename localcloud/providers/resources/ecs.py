"""ECS: security groups and rules, key pairs, deployment sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from localcloud.providers.client import Cloud, CloudError
from localcloud.providers.resources.base import Change, Resource, TableResource, json_list


class _SecurityGroup(TableResource):
    """A security group: the policy of inner access is an action of its own."""

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        identity = super().create(cloud, inputs)
        if inputs.get("innerAccessPolicy"):
            self._policy(cloud, identity, inputs["innerAccessPolicy"])
        return identity

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        super().update(cloud, identity, old, new)
        if old.get("innerAccessPolicy") != new.get("innerAccessPolicy"):
            self._policy(cloud, identity, new.get("innerAccessPolicy") or "Accept")

    @staticmethod
    def _policy(cloud: Cloud, identity: str, policy: str) -> None:
        cloud.call("ecs", "ModifySecurityGroupPolicy", {"SecurityGroupId": identity, "InnerAccessPolicy": policy})


SECURITY_GROUP = _SecurityGroup(
    token="alicloud:ecs/securityGroup:SecurityGroup",  # noqa: S106
    product="ecs",
    create_action="CreateSecurityGroup",
    parameters={
        "vpcId": "VpcId",
        "securityGroupName": "SecurityGroupName",
        "description": "Description",
        "securityGroupType": "SecurityGroupType",
    },
    id_path="SecurityGroupId",
    id_parameter="SecurityGroupId",
    describe_action="DescribeSecurityGroupAttribute",
    describe_path="",
    attributes={
        "vpcId": "VpcId",
        "securityGroupName": "SecurityGroupName",
        "description": "Description",
        "innerAccessPolicy": "InnerAccessPolicy",
    },
    delete_action="DeleteSecurityGroup",
    changes=(
        Change(
            "ModifySecurityGroupAttribute", {"securityGroupName": "SecurityGroupName", "description": "Description"}
        ),
    ),
    tags_on_create=True,
)

KEY_PAIR = TableResource(
    token="alicloud:ecs/ecsKeyPair:EcsKeyPair",  # noqa: S106
    product="ecs",
    create_action="ImportKeyPair",
    parameters={"keyPairName": "KeyPairName", "publicKey": "PublicKeyBody", "resourceGroupId": "ResourceGroupId"},
    id_path="KeyPairName",
    id_parameter="KeyPairName",
    describe_action="DescribeKeyPairs",
    describe_path="KeyPairs.KeyPair",
    attributes={"keyPairName": "KeyPairName", "fingerPrint": "KeyPairFingerPrint", "createTime": "CreationTime"},
    delete_action="DeleteKeyPairs",
    tags_on_create=True,
    token_on_create=False,  # a name can be imported only once
)


class KeyPair(Resource):
    """A key pair; its id is its name, and it is deleted through a list of names."""

    token = KEY_PAIR.token

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """ImportKeyPair (the stacks always bring their public key)."""
        return KEY_PAIR.create(cloud, inputs)

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeKeyPairs."""
        return KEY_PAIR.read(cloud, identity)

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """A changed public key is imported under the same name again."""
        if old.get("publicKey") != new.get("publicKey"):
            self.delete(cloud, identity)
            self.create(cloud, new)

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeleteKeyPairs."""
        try:
            cloud.call("ecs", "DeleteKeyPairs", {"KeyPairNames": json_list(identity)})
        except CloudError as error:
            if not error.not_found:
                raise


class DeploymentSet(Resource):
    """A deployment set; it is described through a list of ids."""

    token = "alicloud:ecs/ecsDeploymentSet:EcsDeploymentSet"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """CreateDeploymentSet."""
        answer = cloud.call(
            "ecs",
            "CreateDeploymentSet",
            {
                "DeploymentSetName": inputs.get("deploymentSetName"),
                "Description": inputs.get("description"),
                "Strategy": inputs.get("strategy"),
                "OnUnableToRedeployFailedInstance": inputs.get("onUnableToRedeployFailedInstance"),
            },
        )
        return str(answer["DeploymentSetId"])

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeDeploymentSets."""
        answer = cloud.call("ecs", "DescribeDeploymentSets", {"DeploymentSetIds": json_list(identity)})
        for found in answer["DeploymentSets"]["DeploymentSet"]:
            if found["DeploymentSetId"] == identity:
                return {
                    "deploymentSetName": found.get("DeploymentSetName"),
                    "description": found.get("DeploymentSetDescription"),
                    "strategy": found.get("DeploymentStrategy") or found.get("Strategy"),
                }
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """ModifyDeploymentSetAttribute."""
        cloud.call(
            "ecs",
            "ModifyDeploymentSetAttribute",
            {
                "DeploymentSetId": identity,
                "DeploymentSetName": new.get("deploymentSetName"),
                "Description": new.get("description"),
            },
        )

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeleteDeploymentSet."""
        try:
            cloud.call("ecs", "DeleteDeploymentSet", {"DeploymentSetId": identity})
        except CloudError as error:
            if not error.not_found:
                raise


class SecurityGroupRule(Resource):
    """A rule of a security group; its id holds everything that identifies it, joined with `|`."""

    token = "alicloud:ecs/securityGroupRule:SecurityGroupRule"  # noqa: S105

    _FIELDS = (
        "securityGroupId",
        "type",
        "ipProtocol",
        "portRange",
        "nicType",
        "cidrIp",
        "sourceSecurityGroupId",
        "policy",
        "priority",
    )

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """AuthorizeSecurityGroup or AuthorizeSecurityGroupEgress."""
        rule = self._rule(inputs)
        cloud.call(
            "ecs", self._action("Authorize", rule), {**self._parameters(rule), "Description": inputs.get("description")}
        )
        return json.dumps([rule[name] for name in self._FIELDS])

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeSecurityGroupAttribute, then the permission that is this rule."""
        rule = dict(zip(self._FIELDS, json.loads(identity), strict=True))
        direction = rule["type"]
        try:
            answer = cloud.call(
                "ecs",
                "DescribeSecurityGroupAttribute",
                {"SecurityGroupId": rule["securityGroupId"], "Direction": direction, "NicType": rule["nicType"]},
            )
        except CloudError as error:
            if error.not_found:
                return None
            raise
        side = "Source" if direction == "ingress" else "Dest"
        for found in answer["Permissions"]["Permission"]:
            same = (
                found["IpProtocol"].lower() == rule["ipProtocol"]
                and found["PortRange"] == rule["portRange"]
                and (found.get(f"{side}CidrIp") or "") == rule["cidrIp"]
                and (found.get(f"{side}GroupId") or "") == rule["sourceSecurityGroupId"]
                and found["Policy"].lower() == rule["policy"]
                and int(found["Priority"]) == rule["priority"]
            )
            if same:
                shown = {name: value for name, value in rule.items() if value != ""}
                return {**shown, "description": found.get("Description") or None}
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """ModifySecurityGroupRule: only the description changes in place."""
        rule = self._rule(new)
        cloud.call(
            "ecs",
            "ModifySecurityGroupRule" if rule["type"] == "ingress" else "ModifySecurityGroupEgressRule",
            {**self._parameters(rule), "Description": new.get("description", "")},
        )

    def delete(self, cloud: Cloud, identity: str) -> None:
        """RevokeSecurityGroup or RevokeSecurityGroupEgress."""
        rule = dict(zip(self._FIELDS, json.loads(identity), strict=True))
        try:
            cloud.call("ecs", self._action("Revoke", rule), self._parameters(rule))
        except CloudError as error:
            if not error.not_found:
                raise

    @staticmethod
    def _rule(inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "securityGroupId": inputs["securityGroupId"],
            "type": inputs["type"],
            "ipProtocol": inputs["ipProtocol"],
            "portRange": inputs.get("portRange") or "-1/-1",
            "nicType": inputs.get("nicType") or "intranet",
            "cidrIp": inputs.get("cidrIp") or "",
            "sourceSecurityGroupId": inputs.get("sourceSecurityGroupId") or "",
            "policy": inputs.get("policy") or "accept",
            "priority": inputs.get("priority") or 1,
        }

    @staticmethod
    def _action(verb: str, rule: Mapping[str, Any]) -> str:
        return f"{verb}SecurityGroup{'Egress' if rule['type'] == 'egress' else ''}"

    @staticmethod
    def _parameters(rule: Mapping[str, Any]) -> dict[str, Any]:
        side = "Dest" if rule["type"] == "egress" else "Source"
        return {
            "SecurityGroupId": rule["securityGroupId"],
            "IpProtocol": rule["ipProtocol"],
            "PortRange": rule["portRange"],
            "NicType": rule["nicType"],
            "Policy": rule["policy"],
            "Priority": rule["priority"],
            f"{side}CidrIp": rule["cidrIp"] or None,
            f"{side}GroupId": rule["sourceSecurityGroupId"] or None,
        }


RESOURCES: tuple[Resource, ...] = (SECURITY_GROUP, KeyPair(), DeploymentSet(), SecurityGroupRule())
