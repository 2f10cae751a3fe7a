"""NAS: file systems, access groups, access rules, mount targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.providers.client import Cloud, CloudError
from localcloud.providers.resources.base import Change, Resource, TableResource

FILE_SYSTEM = TableResource(
    token="alicloud:nas/fileSystem:FileSystem",  # noqa: S106
    product="nas",
    create_action="CreateFileSystem",
    parameters={
        "protocolType": "ProtocolType",
        "storageType": "StorageType",
        "fileSystemType": "FileSystemType",
        "capacity": "Capacity",
        "zoneId": "ZoneId",
        "encryptType": "EncryptType",
        "kmsKeyId": "KmsKeyId",
        "description": "Description",
    },
    id_path="FileSystemId",
    id_parameter="FileSystemId",
    describe_action="DescribeFileSystems",
    describe_path="FileSystems.FileSystem",
    attributes={
        "protocolType": "ProtocolType",
        "storageType": "StorageType",
        "fileSystemType": "FileSystemType",
        "capacity": "Capacity",
        "zoneId": "ZoneId",
        "encryptType": "EncryptType",
        "description": "Description",
        "status": "Status",
        "createTime": "CreateTime",
        "regionId": "RegionId",
    },
    delete_action="DeleteFileSystem",
    changes=(
        Change("ModifyFileSystem", {"description": "Description"}),
        Change("UpgradeFileSystem", {"capacity": "Capacity"}),
    ),
    tag_kind="filesystem",
    ready=("Status", "Running"),
    gone=True,
)


class AccessGroup(Resource):
    """A permission group; its id is `<name>:<file system type>`."""

    token = "alicloud:nas/accessGroup:AccessGroup"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """CreateAccessGroup."""
        kind = inputs.get("fileSystemType") or "standard"
        name = inputs.get("accessGroupName") or inputs.get("name")
        cloud.call(
            "nas",
            "CreateAccessGroup",
            {
                "AccessGroupName": name,
                "AccessGroupType": inputs.get("accessGroupType") or inputs.get("type"),
                "Description": inputs.get("description"),
                "FileSystemType": kind,
            },
        )
        return f"{name}:{kind}"

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeAccessGroups."""
        name, kind = identity.split(":")
        try:
            answer = cloud.call("nas", "DescribeAccessGroups", {"AccessGroupName": name, "FileSystemType": kind})
        except CloudError as error:
            if error.not_found:
                return None
            raise
        for found in answer["AccessGroups"]["AccessGroup"]:
            if found["AccessGroupName"] == name:
                return {
                    "accessGroupName": name,
                    "accessGroupType": found.get("AccessGroupType"),
                    "description": found.get("Description"),
                    "fileSystemType": kind,
                    "createTime": found.get("CreateTime"),
                }
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """ModifyAccessGroup."""
        name, kind = identity.split(":")
        cloud.call(
            "nas",
            "ModifyAccessGroup",
            {"AccessGroupName": name, "FileSystemType": kind, "Description": new.get("description", "")},
        )

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeleteAccessGroup."""
        name, kind = identity.split(":")
        try:
            cloud.call("nas", "DeleteAccessGroup", {"AccessGroupName": name, "FileSystemType": kind})
        except CloudError as error:
            if not error.not_found:
                raise


class AccessRule(Resource):
    """A rule of a permission group; its id is `<group>:<rule>:<file system type>`."""

    token = "alicloud:nas/accessRule:AccessRule"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """CreateAccessRule."""
        kind = inputs.get("fileSystemType") or "standard"
        group = inputs["accessGroupName"]
        answer = cloud.call(
            "nas", "CreateAccessRule", {"AccessGroupName": group, "FileSystemType": kind, **self._settings(inputs)}
        )
        return f"{group}:{answer['AccessRuleId']}:{kind}"

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeAccessRules."""
        group, rule, kind = identity.split(":")
        try:
            answer = cloud.call("nas", "DescribeAccessRules", {"AccessGroupName": group, "FileSystemType": kind})
        except CloudError as error:
            if error.not_found:
                return None
            raise
        for found in answer["AccessRules"]["AccessRule"]:
            if found["AccessRuleId"] == rule:
                return {
                    "accessGroupName": group,
                    "accessRuleId": rule,
                    "fileSystemType": kind,
                    "sourceCidrIp": found.get("SourceCidrIp"),
                    "rwAccessType": found.get("RWAccess"),
                    "userAccessType": found.get("UserAccess"),
                    "priority": found.get("Priority"),
                }
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """ModifyAccessRule."""
        group, rule, kind = identity.split(":")
        cloud.call(
            "nas",
            "ModifyAccessRule",
            {"AccessGroupName": group, "AccessRuleId": rule, "FileSystemType": kind, **self._settings(new)},
        )

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeleteAccessRule."""
        group, rule, kind = identity.split(":")
        try:
            cloud.call(
                "nas", "DeleteAccessRule", {"AccessGroupName": group, "AccessRuleId": rule, "FileSystemType": kind}
            )
        except CloudError as error:
            if not error.not_found:
                raise

    @staticmethod
    def _settings(inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "SourceCidrIp": inputs.get("sourceCidrIp"),
            "RWAccessType": inputs.get("rwAccessType"),
            "UserAccessType": inputs.get("userAccessType"),
            "Priority": inputs.get("priority"),
        }


class MountTarget(Resource):
    """A mount target; its id is `<file system>:<domain>`."""

    token = "alicloud:nas/mountTarget:MountTarget"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """CreateMountTarget, then wait until it is active."""
        file_system = inputs["fileSystemId"]
        answer = cloud.call(
            "nas",
            "CreateMountTarget",
            {
                "FileSystemId": file_system,
                "AccessGroupName": inputs.get("accessGroupName"),
                "NetworkType": inputs.get("networkType") or ("Vpc" if inputs.get("vswitchId") else "Classic"),
                "VpcId": inputs.get("vpcId"),
                "VSwitchId": inputs.get("vswitchId"),
                "SecurityGroupId": inputs.get("securityGroupId"),
            },
        )
        identity = f"{file_system}:{answer['MountTargetDomain']}"
        cloud.wait("CreateMountTarget", lambda: (self.read(cloud, identity) or {}).get("status") == "Active")
        return identity

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeMountTargets."""
        file_system, domain = identity.split(":")
        try:
            answer = cloud.call(
                "nas", "DescribeMountTargets", {"FileSystemId": file_system, "MountTargetDomain": domain}
            )
        except CloudError as error:
            if error.not_found:
                return None
            raise
        for found in answer["MountTargets"]["MountTarget"]:
            if found["MountTargetDomain"] == domain:
                return {
                    "fileSystemId": file_system,
                    "mountTargetDomain": domain,
                    "accessGroupName": found.get("AccessGroup"),
                    "networkType": found.get("NetworkType"),
                    "vpcId": found.get("VpcId"),
                    "vswitchId": found.get("VswId"),
                    "status": found.get("Status"),
                }
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """ModifyMountTarget."""
        file_system, domain = identity.split(":")
        cloud.call(
            "nas",
            "ModifyMountTarget",
            {
                "FileSystemId": file_system,
                "MountTargetDomain": domain,
                "AccessGroupName": new.get("accessGroupName"),
                "Status": new.get("status"),
            },
        )

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeleteMountTarget, then wait until it is gone."""
        file_system, domain = identity.split(":")
        try:
            cloud.call("nas", "DeleteMountTarget", {"FileSystemId": file_system, "MountTargetDomain": domain})
        except CloudError as error:
            if not error.not_found:
                raise
        cloud.wait("DeleteMountTarget", lambda: self.read(cloud, identity) is None)


RESOURCES: tuple[Resource, ...] = (FILE_SYSTEM, AccessGroup(), AccessRule(), MountTarget())
