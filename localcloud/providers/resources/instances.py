"""ECS instances and launch templates."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from localcloud.providers.client import Cloud, CloudError
from localcloud.providers.resources.base import Resource, json_list, set_tags, tag_parameters, tags_of


def user_data_parameter(value: str | None) -> str | None:
    """User data as the API takes it: base64; what is base64 already stays, as in the real provider."""
    if not value:
        return None
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return base64.b64encode(value.encode()).decode()
    return value


class Instance(Resource):
    """An ECS instance."""

    token = "alicloud:ecs/instance:Instance"  # noqa: S105

    _IN_PLACE = {"instanceName": "InstanceName", "hostName": "HostName", "description": "Description"}

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """RunInstances of one, then wait until it runs."""
        groups = inputs.get("securityGroups") or []
        answer = cloud.call(
            "ecs",
            "RunInstances",
            {
                "Amount": 1,
                "ImageId": inputs.get("imageId"),
                "InstanceType": inputs.get("instanceType"),
                "InstanceName": inputs.get("instanceName"),
                "HostName": inputs.get("hostName"),
                "Description": inputs.get("description"),
                "VSwitchId": inputs.get("vswitchId"),
                "PrivateIpAddress": inputs.get("privateIp"),
                "ZoneId": inputs.get("availabilityZone"),
                "SecurityGroupIds": groups or None,
                "KeyPairName": inputs.get("keyName"),
                "RamRoleName": inputs.get("roleName"),
                "InstanceChargeType": inputs.get("instanceChargeType"),
                "Period": inputs.get("period"),
                "PeriodUnit": inputs.get("periodUnit"),
                "AutoRenew": True if inputs.get("renewalStatus") == "AutoRenewal" else None,
                "AutoRenewPeriod": inputs.get("autoRenewPeriod"),
                "SpotStrategy": inputs.get("spotStrategy"),
                "SpotPriceLimit": inputs.get("spotPriceLimit"),
                "AutoReleaseTime": inputs.get("autoReleaseTime"),
                "DeletionProtection": inputs.get("deletionProtection"),
                "DeploymentSetId": inputs.get("deploymentSetId"),
                "InternetMaxBandwidthOut": inputs.get("internetMaxBandwidthOut"),
                "HttpEndpoint": inputs.get("httpEndpoint"),
                "HttpTokens": inputs.get("httpTokens"),
                "UserData": user_data_parameter(inputs.get("userData")),
                "SystemDisk": {
                    "Category": inputs.get("systemDiskCategory"),
                    "Size": inputs.get("systemDiskSize"),
                    "PerformanceLevel": inputs.get("systemDiskPerformanceLevel"),
                    "DiskName": inputs.get("systemDiskName"),
                    "Encrypted": inputs.get("systemDiskEncrypted"),
                    "KMSKeyId": inputs.get("systemDiskKmsKeyId"),
                },
                "Tag": tag_parameters(inputs.get("tags")),
            },
            once=True,
        )
        identity = str(answer["InstanceIdSets"]["InstanceIdSet"][0])
        cloud.wait("RunInstances", lambda: (self._describe(cloud, identity) or {}).get("Status") == "Running")
        if inputs.get("volumeTags"):
            self._tag_disks(cloud, identity, {}, inputs["volumeTags"])
        return identity

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeInstances."""
        found = self._describe(cloud, identity)
        if found is None:
            return None
        vpc = found.get("VpcAttributes", {})
        addresses = vpc.get("PrivateIpAddress", {}).get("IpAddress", [])
        public = found.get("PublicIpAddress", {}).get("IpAddress", [])
        return {
            "imageId": found.get("ImageId"),
            "instanceType": found.get("InstanceType"),
            "instanceName": found.get("InstanceName"),
            "hostName": found.get("HostName"),
            "description": found.get("Description") or None,
            "vswitchId": vpc.get("VSwitchId"),
            "vpcId": vpc.get("VpcId"),
            "availabilityZone": found.get("ZoneId"),
            "securityGroups": found.get("SecurityGroupIds", {}).get("SecurityGroupId", []),
            "keyName": found.get("KeyPairName") or None,
            "instanceChargeType": found.get("InstanceChargeType"),
            "spotStrategy": found.get("SpotStrategy"),
            "deletionProtection": found.get("DeletionProtection"),
            "privateIp": addresses[0] if addresses else None,
            "primaryIpAddress": addresses[0] if addresses else None,
            "publicIp": public[0] if public else "",
            "status": found.get("Status"),
            "cpu": found.get("Cpu"),
            "memory": found.get("Memory"),
            "createTime": found.get("CreationTime"),
            "tags": tags_of(found),
        }

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """ModifyInstanceAttribute, tags, type (stopped meanwhile), user data, charge type and renewal."""
        changed = {api: new.get(name, "") for name, api in self._IN_PLACE.items() if old.get(name) != new.get(name)}
        if old.get("deletionProtection") != new.get("deletionProtection"):
            changed["DeletionProtection"] = bool(new.get("deletionProtection"))
        if sorted(old.get("securityGroups") or []) != sorted(new.get("securityGroups") or []):
            changed["SecurityGroupIds"] = new.get("securityGroups")
        if changed:
            cloud.call("ecs", "ModifyInstanceAttribute", {"InstanceId": identity, **changed})
        if old.get("tags") != new.get("tags"):
            set_tags(cloud, "ecs", "instance", identity, old.get("tags") or {}, new.get("tags") or {})
        if old.get("volumeTags") != new.get("volumeTags"):
            self._tag_disks(cloud, identity, old.get("volumeTags") or {}, new.get("volumeTags") or {})
        stopped = {}
        if old.get("userData") != new.get("userData"):
            stopped["UserData"] = user_data_parameter(new.get("userData")) or ""
        new_type = new.get("instanceType") if old.get("instanceType") != new.get("instanceType") else None
        if stopped or new_type:
            self._stop(cloud, identity)
            if stopped:
                cloud.call("ecs", "ModifyInstanceAttribute", {"InstanceId": identity, **stopped})
            if new_type:
                cloud.call("ecs", "ModifyInstanceSpec", {"InstanceId": identity, "InstanceType": new_type})
            cloud.call("ecs", "StartInstance", {"InstanceId": identity})
            cloud.wait("StartInstance", lambda: (self._describe(cloud, identity) or {}).get("Status") == "Running")
        self._charge(cloud, identity, old, new)

    @staticmethod
    def _charge(cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """ModifyInstanceChargeType, then ModifyInstanceAutoRenewAttribute for subscriptions."""
        kind = new.get("instanceChargeType") or "PostPaid"
        if (old.get("instanceChargeType") or "PostPaid") != kind:
            period = {"Period": new.get("period") or 1, "PeriodUnit": new.get("periodUnit") or "Month"}
            cloud.call(
                "ecs",
                "ModifyInstanceChargeType",
                {
                    "InstanceIds": json_list(identity),
                    "InstanceChargeType": kind,
                    "IncludeDataDisks": True,
                    "AutoPay": True,
                    **(period if kind == "PrePaid" else {}),
                },
            )
        status = new.get("renewalStatus")
        renewed = [old.get(name) != new.get(name) for name in ("renewalStatus", "autoRenewPeriod")]
        if kind == "PrePaid" and status and any(renewed):
            automatic = {"Duration": new.get("autoRenewPeriod") or 1, "PeriodUnit": new.get("periodUnit") or "Month"}
            cloud.call(
                "ecs",
                "ModifyInstanceAutoRenewAttribute",
                {
                    "InstanceId": identity,
                    "RenewalStatus": status,
                    **(automatic if status == "AutoRenewal" else {}),
                },
            )

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeleteInstance, then wait until it is gone."""
        try:
            cloud.call("ecs", "DeleteInstance", {"InstanceId": identity, "Force": True})
        except CloudError as error:
            if not error.not_found:
                raise
        cloud.wait("DeleteInstance", lambda: self._describe(cloud, identity) is None)

    def _stop(self, cloud: Cloud, identity: str) -> None:
        if (self._describe(cloud, identity) or {}).get("Status") != "Stopped":
            cloud.call("ecs", "StopInstance", {"InstanceId": identity})
            cloud.wait("StopInstance", lambda: (self._describe(cloud, identity) or {}).get("Status") == "Stopped")

    @staticmethod
    def _describe(cloud: Cloud, identity: str) -> Mapping[str, Any] | None:
        answer = cloud.call("ecs", "DescribeInstances", {"InstanceIds": json_list(identity)})
        found = answer["Instances"]["Instance"]
        return found[0] if found else None

    @staticmethod
    def _tag_disks(cloud: Cloud, identity: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        disks = cloud.call("ecs", "DescribeDisks", {"InstanceId": identity})
        for disk in disks["Disks"]["Disk"]:
            set_tags(cloud, "ecs", "disk", disk["DiskId"], old, new)


class LaunchTemplate(Resource):
    """A launch template: a change makes a new version, which becomes the default."""

    token = "alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate"  # noqa: S105

    _PLAIN = {
        "versionDescription": "VersionDescription",
        "imageId": "ImageId",
        "instanceType": "InstanceType",
        "instanceName": "InstanceName",
        "hostName": "HostName",
        "description": "Description",
        "keyPairName": "KeyPairName",
        "ramRoleName": "RamRoleName",
        "instanceChargeType": "InstanceChargeType",
        "spotStrategy": "SpotStrategy",
        "spotPriceLimit": "SpotPriceLimit",
        "spotDuration": "SpotDuration",
        "deploymentSetId": "DeploymentSetId",
        "httpEndpoint": "HttpEndpoint",
        "httpTokens": "HttpTokens",
        "internetMaxBandwidthOut": "InternetMaxBandwidthOut",
        "securityGroupId": "SecurityGroupId",
        "vswitchId": "VSwitchId",
        "networkType": "NetworkType",
        "zoneId": "ZoneId",
    }
    _DISK = {
        "category": "Category",
        "size": "Size",
        "performanceLevel": "PerformanceLevel",
        "name": "DiskName",
        "description": "Description",
        "encrypted": "Encrypted",
        "kmsKeyId": "KMSKeyId",
        "deleteWithInstance": "DeleteWithInstance",
    }

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """CreateLaunchTemplate."""
        answer = cloud.call(
            "ecs",
            "CreateLaunchTemplate",
            {
                "LaunchTemplateName": inputs.get("launchTemplateName") or inputs.get("name"),
                "TemplateTag": tag_parameters(inputs.get("templateTags")),
                **self._settings(inputs),
            },
        )
        return str(answer["LaunchTemplateId"])

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeLaunchTemplates and its default version."""
        try:
            templates = cloud.call("ecs", "DescribeLaunchTemplates", {"LaunchTemplateId": [identity]})
        except CloudError as error:
            if error.not_found:
                return None
            raise
        for template in templates["LaunchTemplateSets"]["LaunchTemplateSet"]:
            if template["LaunchTemplateId"] == identity:
                number = template["DefaultVersionNumber"]
                return {
                    "launchTemplateName": template["LaunchTemplateName"],
                    "defaultVersionNumber": number,
                    "latestVersionNumber": template.get("LatestVersionNumber"),
                    **self._version(cloud, identity, number),
                }
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """CreateLaunchTemplateVersion; it becomes the default unless `updateDefaultVersionNumber` is false."""
        answer = cloud.call("ecs", "CreateLaunchTemplateVersion", {"LaunchTemplateId": identity, **self._settings(new)})
        if new.get("updateDefaultVersionNumber", True):
            number = answer.get("LaunchTemplateVersionNumber")
            cloud.call(
                "ecs",
                "ModifyLaunchTemplateDefaultVersion",
                {"LaunchTemplateId": identity, "DefaultVersionNumber": number},
            )

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeleteLaunchTemplate, all versions with it."""
        try:
            cloud.call("ecs", "DeleteLaunchTemplate", {"LaunchTemplateId": identity})
        except CloudError as error:
            if not error.not_found:
                raise

    def _settings(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        disk = inputs.get("systemDisk") or {}
        return {
            # The real provider leaves out what is zero.
            **{api: inputs.get(name) or None for name, api in self._PLAIN.items()},
            "SecurityGroupIds": inputs.get("securityGroupIds"),
            "UserData": user_data_parameter(inputs.get("userData") or inputs.get("userdata")),
            "SystemDisk": {api: disk.get(name) for name, api in self._DISK.items()},
            "Tag": tag_parameters(inputs.get("tags")),
        }

    def _version(self, cloud: Cloud, identity: str, number: int) -> dict[str, Any]:
        answer = cloud.call(
            "ecs",
            "DescribeLaunchTemplateVersions",
            {"LaunchTemplateId": identity, "LaunchTemplateVersion": [number]},
        )
        versions = answer["LaunchTemplateVersionSets"]["LaunchTemplateVersionSet"]
        if not versions:
            return {}
        data = versions[0].get("LaunchTemplateData", {})
        found = {name: data.get(api) for name, api in self._PLAIN.items() if data.get(api) not in (None, "")}
        found["tags"] = {tag["Key"]: tag["Value"] for tag in data.get("Tags", {}).get("InstanceTag", [])}
        return found


RESOURCES: tuple[Resource, ...] = (Instance(), LaunchTemplate())
