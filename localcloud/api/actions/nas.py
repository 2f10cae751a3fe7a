"""NAS: file systems, permission groups and their rules, mount targets."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from localcloud.api import ids
from localcloud.api.actions.ecs_security_groups import need_group
from localcloud.api.actions.vpc import need_vpc, need_vswitch
from localcloud.api.call import Call, tag_list
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, dependency, invalid, not_found, quota
from localcloud.api.registry import read, write
from localcloud.api.store import Doc

_STORAGE = {
    "standard": ("Capacity", "Performance", "Premium"),
    "extreme": ("standard", "advance"),
}
_TYPES = ("standard", "extreme", "cpfs")
_ACCESS = {"RDWR": "RDWR", "RDONLY": "RDONLY"}
_SQUASH = ("no_squash", "root_squash", "all_squash")
_SMALLEST_EXTREME, _LARGEST_EXTREME = 100, 262_144


def _file_system_type(call: Call, default: str = "standard") -> str:
    kind = call.params.choice("FileSystemType", (*_TYPES, "all"), default)
    if kind == "cpfs":
        raise ApiError(400, "UnsupportedOperation", "This cloud has general and extreme NAS only.")
    return kind


def _need_fs(call: Call, fs_id: str) -> Doc:
    doc = call.store.get("file_system", fs_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("InvalidFileSystem.NotFound", "file system")
    return doc


@write(
    "nas",
    "CreateFileSystem",
    "RegionId StorageType! ProtocolType! FileSystemType Capacity ZoneId Description EncryptType KmsKeyId SnapshotId "
    "ChargeType Duration VpcId VSwitchId ClientToken DryRun ResourceGroupId Bandwidth Tag.N.{Key Value}",
)
def create_file_system(call: Call) -> dict[str, Any]:
    """Make a general or extreme file system."""
    params = call.params
    kind = _file_system_type(call)
    storage = params.choice("StorageType", _STORAGE[kind])
    protocol = params.choice("ProtocolType", ("NFS", "SMB"))
    if kind == "extreme" and protocol != "NFS":
        raise invalid("ProtocolType", "Extreme NAS serves NFS only.")
    if params.choice("ChargeType", ("PayAsYouGo", "Subscription"), "PayAsYouGo") != "PayAsYouGo":
        raise ApiError(400, "UnsupportedOperation", "This cloud has NAS with pay-as-you-go only.")
    if "SnapshotId" in params:
        raise ApiError(400, "UnsupportedOperation", "This cloud has no snapshots.")
    zone, capacity = params.text("ZoneId"), 0
    if kind == "extreme":
        zone = params.require("ZoneId")
        capacity = params.number("Capacity", 0, _SMALLEST_EXTREME, _LARGEST_EXTREME)
        if not capacity:
            raise ApiError(400, "MissingParameter.Capacity", "Capacity is mandatory for this action.")
    if zone:
        call.cloud.offers.check_zone(call.region, zone, "InvalidZone.NotFound")
    quotas = call.cloud.knobs.quotas
    limit = quotas.extreme_file_systems if kind == "extreme" else quotas.general_file_systems
    if call.store.count("file_system", {"fs_type": kind, "region": call.region}) >= limit:
        raise quota("Resource.OutOfQuota", "The number of file systems exceeds the quota.")
    fs_id = ("extreme-" if kind == "extreme" else "") + ids.text(12 if kind == "extreme" else 10)
    doc = {
        "id": fs_id,
        "region": call.region,
        "fs_type": kind,
        "storage_type": storage,
        "protocol": protocol,
        "capacity": capacity,
        "zone": zone or call.cloud.offers.zones(call.region)[0],
        "description": params.text("Description", fs_id),
        "encrypt_type": params.number("EncryptType", 0, 0, 2),
        "kms_key": params.text("KmsKeyId"),
        "status": "Running" if kind == "standard" else "Pending",
        "created": call.now,
        "resource_group": params.text("ResourceGroupId", "rg-acfm-default"),
        "tags": params.tags(),
    }
    delay = call.cloud.knobs.nas_creation
    if kind == "extreme" and delay > 0:
        call.store.insert("file_system", doc)
        call.store.set_timer("file_system", fs_id, "ready", call.now + delay)
    else:
        doc["status"] = "Running"
        call.store.insert("file_system", doc)
    return {"FileSystemId": fs_id}


def _target_view(doc: Doc) -> dict[str, Any]:
    return {
        "MountTargetDomain": doc["domain"],
        "NetworkType": "Vpc",
        "AccessGroup": doc["access_group"],
        "Status": doc["status"],
        "VpcId": doc["vpc_id"],
        "VswId": doc["vswitch_id"],
        "IPVersion": "IPv4",
        "DualStackMountTargetDomain": "",
        "ClientMasterNodes": {"ClientMasterNode": []},
        "Tags": {"Tag": []},
    }


def _fs_view(call: Call, doc: Doc) -> dict[str, Any]:
    targets = call.store.find("mount_target", {"file_system_id": doc["id"]})
    return {
        "FileSystemId": doc["id"],
        "FileSystemType": doc["fs_type"],
        "StorageType": doc["storage_type"],
        "ProtocolType": doc["protocol"],
        "Capacity": doc["capacity"],
        "RegionId": doc["region"],
        "ZoneId": doc["zone"],
        "Description": doc["description"],
        "EncryptType": doc["encrypt_type"],
        "KMSKeyId": doc["kms_key"],
        "Status": doc["status"],
        "ChargeType": "PayAsYouGo",
        "CreateTime": iso_seconds(doc["created"]),
        "ExpiredTime": "",
        "MeteredSize": 0,
        "MeteredIASize": 0,
        "MeteredArchiveSize": 0,
        "Bandwidth": 0,
        "Version": "",
        "ResourceGroupId": doc["resource_group"],
        "AutoSnapshotPolicyId": "",
        # Left empty as by the real service on general and extreme NAS, whatever the request said.
        "VpcId": "",
        "QuorumVswId": "",
        "RedundancyType": "LRS",
        "Packages": {"Package": []},
        "SupportedFeatures": {"SupportedFeature": []},
        "Ldap": {},
        "Options": {},
        "MountTargets": {"MountTarget": [_target_view(target) for target in targets]},
        "Tags": tag_list(doc, upper=False),
    }


@read(
    "nas",
    "DescribeFileSystems",
    "RegionId FileSystemId FileSystemType VpcId ResourceGroupId PageNumber PageSize Tag.N.{Key Value}",
)
def describe_file_systems(call: Call) -> dict[str, Any]:
    """File systems by id, type and tags."""
    fs_id = call.params.text("FileSystemId")
    kind = _file_system_type(call, "all")
    if fs_id:
        _need_fs(call, fs_id)
    docs, page = call.listing(
        "file_system",
        {"fs_type": "" if kind == "all" else kind, "region": call.region},
        ids=[fs_id] if fs_id else None,
        tags=call.params.tags(),
    )
    return {"FileSystems": {"FileSystem": [_fs_view(call, doc) for doc in docs]}, **page}


@write("nas", "ModifyFileSystem", "RegionId FileSystemId! Description Options")
def modify_file_system(call: Call) -> dict[str, Any]:
    """Change the description."""
    doc = _need_fs(call, call.params.require("FileSystemId"))
    doc["description"] = call.params.text("Description", doc["description"])
    call.store.update("file_system", doc)
    return {}


@write("nas", "UpgradeFileSystem", "RegionId FileSystemId! Capacity! ClientToken DryRun")
def upgrade_file_system(call: Call) -> dict[str, Any]:
    """Grow an extreme file system."""
    doc = _need_fs(call, call.params.require("FileSystemId"))
    if doc["fs_type"] != "extreme":
        raise ApiError(400, "InvalidFileSystem.ServiceNotSupported", "The file system has no fixed capacity.")
    capacity = call.params.number("Capacity", 0, _SMALLEST_EXTREME, _LARGEST_EXTREME)
    if capacity <= doc["capacity"]:
        raise invalid("Capacity", "It must be greater than the present capacity.")
    doc["capacity"] = capacity
    call.store.update("file_system", doc)
    return {}


@write("nas", "DeleteFileSystem", "RegionId FileSystemId!")
def delete_file_system(call: Call) -> dict[str, Any]:
    """Delete a file system that has no mount target."""
    doc = _need_fs(call, call.params.require("FileSystemId"))
    if call.store.count("mount_target", {"file_system_id": doc["id"]}):
        raise dependency(
            "OperationDenied.ExistMountTarget", "The file system still has mount targets; delete them first."
        )
    call.store.delete("file_system", doc["id"])
    fs_id = doc["id"]
    call.after(lambda driver: driver.delete_file_system(fs_id))
    return {}


@read("nas", "DescribeZones", "RegionId FileSystemType")
def describe_zones(call: Call) -> dict[str, Any]:
    """Zones with the kinds of NAS that they sell."""
    return {
        "Zones": {
            "Zone": [
                {
                    "ZoneId": zone,
                    "Capacity": {"Protocol": ["NFS", "SMB"]},
                    "Performance": {"Protocol": ["NFS", "SMB"]},
                    "InstanceTypes": {
                        "InstanceType": [
                            {"StorageType": storage, "ProtocolType": "nfs"}
                            for storage in ("capacity", "performance", "standard", "advance")
                        ]
                    },
                }
                for zone in call.cloud.offers.zones(call.region)
            ]
        }
    }


@read("nas", "DescribeRegions", "RegionId FileSystemType PageNumber PageSize")
def describe_regions(call: Call) -> dict[str, Any]:
    """Regions."""
    regions = call.cloud.offers.regions()
    return {
        "TotalCount": len(regions),
        "PageNumber": 1,
        "PageSize": len(regions),
        "Regions": {
            "Region": [{"RegionId": region, "LocalName": name, "RegionEndpoint": ""} for region, name in regions]
        },
    }


@read("nas", "DescribeNfsAcl", "RegionId FileSystemId!")
def describe_nfs_acl(call: Call) -> dict[str, Any]:
    """NFS ACL of a file system: off in this cloud."""
    _need_fs(call, call.params.require("FileSystemId"))
    return {"Acl": {"Enabled": False}}


@read("nas", "DescribeSmbAcl", "RegionId FileSystemId!")
def describe_smb_acl(call: Call) -> dict[str, Any]:
    """SMB ACL of a file system: off in this cloud."""
    _need_fs(call, call.params.require("FileSystemId"))
    return {"Acl": {"Enabled": False}}


@read("nas", "GetRecycleBinAttribute", "RegionId FileSystemId!")
def get_recycle_bin(call: Call) -> dict[str, Any]:
    """Recycle bin of a file system: off in this cloud."""
    _need_fs(call, call.params.require("FileSystemId"))
    return {
        "RecycleBinAttribute": {"Status": "Disable", "ReservedDays": 0, "Size": 0, "SecondarySize": 0, "EnableTime": ""}
    }


# -- permission groups -------------------------------------------------------------------------------------------


def _group_id(call: Call, name: str, kind: str) -> str:
    return f"{call.region}/{kind}/{name}"


def _need_access_group(call: Call, name: str, kind: str) -> Doc:
    return call.store.need(
        "access_group", _group_id(call, name, kind), not_found("InvalidAccessGroup.NotFound", "access group")
    )


@write("nas", "CreateAccessGroup", "RegionId AccessGroupName! AccessGroupType! Description FileSystemType")
def create_access_group(call: Call) -> dict[str, Any]:
    """Make a permission group."""
    params = call.params
    kind, name = _file_system_type(call), params.require("AccessGroupName")
    params.choice("AccessGroupType", ("Vpc",))
    if call.store.get("access_group", _group_id(call, name, kind)):
        raise ApiError(400, "InvalidAccessGroup.AlreadyExisted", "The access group already exists.")
    if (
        call.store.count("access_group", {"fs_type": kind, "region": call.region})
        >= call.cloud.knobs.quotas.access_groups
    ):
        raise quota("Resource.OutOfQuota", "The number of access groups exceeds the quota.")
    call.store.insert(
        "access_group",
        {
            "id": _group_id(call, name, kind),
            "region": call.region,
            "fs_type": kind,
            "name": name,
            "description": params.text("Description"),
            "created": call.now,
            "tags": {},
        },
    )
    return {"AccessGroupName": name}


@read(
    "nas",
    "DescribeAccessGroups",
    "RegionId AccessGroupName FileSystemType UseUTCDateTime PageNumber PageSize",
)
def describe_access_groups(call: Call) -> dict[str, Any]:
    """Permission groups."""
    kind = _file_system_type(call, "all")
    docs, page = call.listing(
        "access_group",
        {
            "name": call.params.text("AccessGroupName"),
            "fs_type": "" if kind == "all" else kind,
            "region": call.region,
        },
    )
    views = [
        {
            "AccessGroupName": doc["name"],
            "AccessGroupType": "Vpc",
            "FileSystemType": doc["fs_type"],
            "Description": doc["description"],
            "RegionId": doc["region"],
            "RuleCount": call.store.count("access_rule", {"access_group_id": doc["id"]}),
            "MountTargetCount": call.store.count("mount_target", {"access_group_id": doc["id"]}),
            "CreateTime": iso_seconds(doc["created"]),
        }
        for doc in docs
    ]
    return {"AccessGroups": {"AccessGroup": views}, **page}


@write("nas", "ModifyAccessGroup", "RegionId AccessGroupName! Description FileSystemType")
def modify_access_group(call: Call) -> dict[str, Any]:
    """Change the description."""
    doc = _need_access_group(call, call.params.require("AccessGroupName"), _file_system_type(call))
    doc["description"] = call.params.text("Description")
    call.store.update("access_group", doc)
    return {}


@write("nas", "DeleteAccessGroup", "RegionId AccessGroupName! FileSystemType")
def delete_access_group(call: Call) -> dict[str, Any]:
    """Delete a group that no mount target uses, with its rules."""
    doc = _need_access_group(call, call.params.require("AccessGroupName"), _file_system_type(call))
    if call.store.count("mount_target", {"access_group_id": doc["id"]}):
        raise dependency("InvalidAccessGroup.InUse", "The access group is still used by a mount target.")
    for rule in call.store.find("access_rule", {"access_group_id": doc["id"]}):
        call.store.delete("access_rule", rule["id"])
    call.store.delete("access_group", doc["id"])
    return {}


_RULE = "SourceCidrIp Ipv6SourceCidrIp RWAccessType UserAccessType Priority"


def _fill_rule(call: Call, rule: Doc) -> None:
    params = call.params
    source = params.text("SourceCidrIp", rule.get("source", ""))
    if not source:
        raise ApiError(400, "MissingParameter.SourceCidrIp", "SourceCidrIp is mandatory for this action.")
    try:
        ipaddress.IPv4Network(source, strict=False)
    except ValueError:
        raise invalid("SourceCidrIp") from None
    rule["source"] = source
    rule["rw"] = params.choice("RWAccessType", tuple(_ACCESS), rule.get("rw", "RDWR"))
    rule["user"] = params.choice("UserAccessType", _SQUASH, rule.get("user", "no_squash"))
    rule["priority"] = params.number("Priority", rule.get("priority", 1), 1, 100)


@write("nas", "CreateAccessRule", f"RegionId AccessGroupName! FileSystemType {_RULE}")
def create_access_rule(call: Call) -> dict[str, Any]:
    """Add a rule to a permission group."""
    group = _need_access_group(call, call.params.require("AccessGroupName"), _file_system_type(call))
    existing = call.store.find("access_rule", {"access_group_id": group["id"]})
    if len(existing) >= call.cloud.knobs.quotas.access_rules_per_group:
        raise quota("Resource.OutOfQuota", "The number of access rules exceeds the quota.")
    rule: Doc = {
        "id": "ar-" + ids.text(12),
        "access_group_id": group["id"],
        "region": call.region,
        "created": call.now,
        "tags": {},
    }
    _fill_rule(call, rule)
    if any(item["source"] == rule["source"] and item["priority"] == rule["priority"] for item in existing):
        raise ApiError(400, "InvalidAccessRule.AlreadyExisted", "The access rule already exists.")
    call.store.insert("access_rule", rule)
    call.network_changed()
    return {"AccessRuleId": rule["id"]}


@read(
    "nas",
    "DescribeAccessRules",
    "RegionId AccessGroupName! AccessRuleId FileSystemType PageNumber PageSize",
)
def describe_access_rules(call: Call) -> dict[str, Any]:
    """Rules of a permission group."""
    group = _need_access_group(call, call.params.require("AccessGroupName"), _file_system_type(call))
    rule_id = call.params.text("AccessRuleId")
    docs, page = call.listing("access_rule", {"access_group_id": group["id"]}, ids=[rule_id] if rule_id else None)
    views = [
        {
            "AccessRuleId": doc["id"],
            "AccessGroupName": group["name"],
            "FileSystemType": group["fs_type"],
            "SourceCidrIp": doc["source"],
            "Ipv6SourceCidrIp": "",
            "RWAccess": doc["rw"],
            "UserAccess": doc["user"],
            "Priority": doc["priority"],
            "RegionId": doc["region"],
        }
        for doc in docs
    ]
    return {"AccessRules": {"AccessRule": views}, **page}


@write("nas", "ModifyAccessRule", f"RegionId AccessGroupName! AccessRuleId! FileSystemType {_RULE}")
def modify_access_rule(call: Call) -> dict[str, Any]:
    """Change a rule."""
    _need_access_group(call, call.params.require("AccessGroupName"), _file_system_type(call))
    rule = call.store.need(
        "access_rule", call.params.require("AccessRuleId"), not_found("InvalidAccessRule.NotFound", "access rule")
    )
    _fill_rule(call, rule)
    call.store.update("access_rule", rule)
    call.network_changed()
    return {}


@write("nas", "DeleteAccessRule", "RegionId AccessGroupName! AccessRuleId! FileSystemType")
def delete_access_rule(call: Call) -> dict[str, Any]:
    """Delete a rule."""
    _need_access_group(call, call.params.require("AccessGroupName"), _file_system_type(call))
    rule_id = call.params.require("AccessRuleId")
    call.store.need("access_rule", rule_id, not_found("InvalidAccessRule.NotFound", "access rule"))
    call.store.delete("access_rule", rule_id)
    call.network_changed()
    return {}


# -- mount targets -----------------------------------------------------------------------------------------------


@write(
    "nas",
    "CreateMountTarget",
    "RegionId FileSystemId! AccessGroupName NetworkType! VpcId VSwitchId SecurityGroupId EnableIpv6 DryRun ClientToken",
)
def create_mount_target(call: Call) -> dict[str, Any]:
    """Make a mount target of a file system in a vSwitch."""
    params = call.params
    system = _need_fs(call, params.require("FileSystemId"))
    if system["status"] != "Running":
        raise ApiError(400, "InvalidFileSystemStatus.Pending", "The file system is not ready.")
    params.choice("NetworkType", ("Vpc",))
    vpc = need_vpc(call, params.require("VpcId"))
    vswitch = need_vswitch(call, params.require("VSwitchId"))
    if vswitch["vpc_id"] != vpc["id"]:
        raise invalid("VSwitchId", "It is not in the VPC.")
    if system["fs_type"] == "extreme" and vswitch["zone"] != system["zone"]:
        raise invalid("VSwitchId", "An extreme file system is mounted from its own zone's vSwitch.")
    name = params.text("AccessGroupName", "DEFAULT_VPC_GROUP_NAME")
    group = _need_access_group(call, name, system["fs_type"])
    existing = call.store.find("mount_target", {"file_system_id": system["id"]})
    if len(existing) >= call.cloud.knobs.quotas.mount_targets_per_file_system:
        raise quota("MountTarget.OutOfQuota", "The number of mount targets exceeds the quota.")
    group_id = params.text("SecurityGroupId")
    if group_id:
        need_group(call, group_id)
    middle = ".extreme" if system["fs_type"] == "extreme" else ""
    stem = system["id"].removeprefix("extreme-")
    domain = f"{stem}-{ids.text(4)}.{call.region}{middle}.nas.aliyuncs.com"
    doc = {
        "id": domain,
        "region": call.region,
        "domain": domain,
        "file_system_id": system["id"],
        "access_group": name,
        "access_group_id": group["id"],
        "vpc_id": vpc["id"],
        "vswitch_id": vswitch["id"],
        "security_group_id": group_id,
        "status": "Active",
        "created": call.now,
        "tags": {},
    }
    call.store.insert("mount_target", doc)
    call.network_changed()
    return {"MountTargetDomain": domain, "MountTargetExtra": {}}


def _need_target(call: Call) -> Doc:
    system = _need_fs(call, call.params.require("FileSystemId"))
    doc = call.store.get("mount_target", call.params.require("MountTargetDomain"))
    if doc is None or doc["file_system_id"] != system["id"]:
        raise not_found("InvalidMountTarget.NotFound", "mount target")
    return doc


@read(
    "nas",
    "DescribeMountTargets",
    "RegionId FileSystemId! MountTargetDomain DualStackMountTargetDomain PageNumber PageSize",
)
def describe_mount_targets(call: Call) -> dict[str, Any]:
    """Mount targets of a file system."""
    system = _need_fs(call, call.params.require("FileSystemId"))
    if "MountTargetDomain" in call.params:
        _need_target(call)
    domain = call.params.text("MountTargetDomain")
    docs, page = call.listing("mount_target", {"file_system_id": system["id"]}, ids=[domain] if domain else None)
    return {"MountTargets": {"MountTarget": [_target_view(doc) for doc in docs]}, **page}


@write("nas", "ModifyMountTarget", "RegionId FileSystemId! MountTargetDomain! AccessGroupName Status")
def modify_mount_target(call: Call) -> dict[str, Any]:
    """Change permission group and state."""
    doc = _need_target(call)
    system = _need_fs(call, doc["file_system_id"])
    if "AccessGroupName" in call.params:
        group = _need_access_group(call, call.params.require("AccessGroupName"), system["fs_type"])
        doc.update(access_group=group["name"], access_group_id=group["id"])
    doc["status"] = call.params.choice("Status", ("Active", "Inactive"), doc["status"])
    call.store.update("mount_target", doc)
    call.network_changed()
    return {}


@write("nas", "DeleteMountTarget", "RegionId FileSystemId! MountTargetDomain!")
def delete_mount_target(call: Call) -> dict[str, Any]:
    """Delete a mount target."""
    call.store.delete("mount_target", _need_target(call)["id"])
    call.network_changed()
    return {}


def on_timer(call: Call, system_ids: Sequence[str], event: str) -> None:
    """File systems have become ready."""
    if event == "ready":
        call.store.change("file_system", call.store.get_many("file_system", system_ids), {"status": "Running"})
