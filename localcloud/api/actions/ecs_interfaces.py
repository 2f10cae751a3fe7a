"""Elastic network interfaces."""

from __future__ import annotations

from typing import Any

from localcloud.api import ids
from localcloud.api.actions import addresses
from localcloud.api.actions.ecs_security_groups import need_groups, set_groups
from localcloud.api.actions.vpc import need_vswitch
from localcloud.api.call import Call, tag_list
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, not_found, quota
from localcloud.api.params import Params
from localcloud.api.registry import read, write
from localcloud.api.store import Doc


def new_eni(
    call: Call,
    vswitch: Doc,
    groups: list[str],
    address: str,
    element: Params,
    *,
    instance_id: str,
    primary: bool,
    tags: dict[str, str],
) -> Doc:
    """A document of an interface; `element` holds what the request says of it."""
    return {
        "id": ids.resource_id("eni"),
        "region": call.region,
        "zone": vswitch["zone"],
        "vpc_id": vswitch["vpc_id"],
        "vswitch_id": vswitch["id"],
        "security_group_ids": groups,
        "private_ip": address,
        "mac": ids.mac(),
        "instance_id": instance_id,
        "status": "InUse" if instance_id else "Available",
        "type": "Primary" if primary else "Secondary",
        "name": element.text("NetworkInterfaceName"),
        "description": element.text("Description"),
        "traffic_mode": element.choice("NetworkInterfaceTrafficMode", ("Standard", "HighPerformance"), "Standard"),
        "queue_pairs": element.number("QueuePairNumber"),
        "card_index": element.number("NetworkCardIndex"),
        "source_dest_check": element.flag("SourceDestCheck"),
        "delete_on_release": element.flag("DeleteOnRelease", bool(instance_id)),
        "created": call.now,
        "resource_group": "",
        "tags": dict(tags),
    }


def _need_eni(call: Call, eni_id: str) -> Doc:
    doc = call.store.get("eni", eni_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("InvalidEniId.NotFound", "NetworkInterfaceId")
    return doc


def _view(call: Call, doc: Doc) -> dict[str, Any]:
    eip = next(iter(call.store.find("eip", {"instance_id": doc["id"]}, limit=1)), None)
    if eip is None and doc["type"] == "Primary" and doc["instance_id"]:
        eip = next(iter(call.store.find("eip", {"instance_id": doc["instance_id"]}, limit=1)), None)
    public = {"AllocationId": eip["id"], "PublicIpAddress": eip["address"]} if eip else {}
    return {
        "NetworkInterfaceId": doc["id"],
        "NetworkInterfaceName": doc["name"],
        "Description": doc["description"],
        "Status": doc["status"],
        "Type": doc["type"],
        "VpcId": doc["vpc_id"],
        "VSwitchId": doc["vswitch_id"],
        "ZoneId": doc["zone"],
        "InstanceId": doc["instance_id"],
        "MacAddress": doc["mac"],
        "PrivateIpAddress": doc["private_ip"],
        "PrivateIpSets": {
            "PrivateIpSet": [{"PrivateIpAddress": doc["private_ip"], "Primary": True, "AssociatedPublicIp": public}]
        },
        "Ipv6Sets": {"Ipv6Set": []},
        "Ipv4PrefixSets": {"Ipv4PrefixSet": []},
        "Ipv6PrefixSets": {"Ipv6PrefixSet": []},
        "SecurityGroupIds": {"SecurityGroupId": doc["security_group_ids"]},
        "NetworkInterfaceTrafficMode": doc["traffic_mode"],
        "QueueNumber": 0,
        "QueuePairNumber": doc["queue_pairs"],
        "SourceDestCheck": doc["source_dest_check"],
        "DeleteOnRelease": doc["delete_on_release"],
        "ResourceGroupId": doc["resource_group"],
        "OwnerId": call.cloud.account_id,
        "ServiceManaged": False,
        "ServiceID": 0,
        "CreationTime": iso_seconds(doc["created"]),
        "Attachment": {
            "InstanceId": doc["instance_id"],
            "DeviceIndex": 0 if doc["type"] == "Primary" else 1,
            "NetworkCardIndex": doc["card_index"],
            "TrunkNetworkInterfaceId": "",
        }
        if doc["instance_id"]
        else {},
        "AssociatedPublicIp": public,
        "Tags": tag_list(doc),
    }


@write(
    "ecs",
    "CreateNetworkInterface",
    "RegionId VSwitchId! SecurityGroupId SecurityGroupIds.N NetworkInterfaceName Description PrimaryIpAddress "
    "ResourceGroupId ClientToken InstanceType NetworkInterfaceTrafficMode QueuePairNumber QueueNumber DeleteOnRelease "
    "SourceDestCheck Tag.N.{Key Value}",
)
def create_interface(call: Call) -> dict[str, Any]:
    """Make an interface in a vSwitch."""
    params = call.params
    vswitch = need_vswitch(call, params.require("VSwitchId"))
    groups = params.texts("SecurityGroupIds") or [params.text("SecurityGroupId")]
    groups = [item for item in groups if item]
    if not groups:
        raise ApiError(400, "MissingParameter.SecurityGroupId", "The parameter SecurityGroupId is mandatory.")
    groups = need_groups(call, groups, vswitch["vpc_id"])
    if call.store.count("eni", {"region": call.region}) >= call.cloud.knobs.quotas.network_interfaces:
        raise quota("EniPerRegionLimitExceeded", "The maximum number of network interfaces is reached.")
    address = addresses.take(call.store, vswitch, 1, params.text("PrimaryIpAddress"))[0]
    doc = new_eni(call, vswitch, groups, address, params, instance_id="", primary=False, tags=params.tags())
    doc["resource_group"] = params.text("ResourceGroupId")
    call.store.insert("eni", doc)
    view = _view(call, doc)
    absent = (
        "AssociatedPublicIp", "Attachment", "CreationTime", "DeleteOnRelease", "InstanceId",
        "NetworkInterfaceTrafficMode", "QueueNumber", "QueuePairNumber",
    )  # fmt: skip
    return {key: value for key, value in view.items() if key not in absent}


@read(
    "ecs",
    "DescribeNetworkInterfaces",
    "RegionId VSwitchId VpcId SecurityGroupId NetworkInterfaceName Type InstanceId Status PrivateIpAddress.N "
    "PrimaryIpAddress NetworkInterfaceId.N ResourceGroupId PageNumber PageSize MaxResults NextToken ServiceManaged "
    "NetworkInterfaceTrafficMode Attributes.N Tag.N.{Key Value}",
)
def describe_interfaces(call: Call) -> dict[str, Any]:
    """Interfaces by id, instance, network and tags."""
    params = call.params
    docs, page = call.listing(
        "eni",
        {
            "instance_id": params.text("InstanceId"),
            "vswitch_id": params.text("VSwitchId"),
            "security_group_ids": params.text("SecurityGroupId"),
            "vpc_id": params.text("VpcId"),
            "private_ip": params.texts("PrivateIpAddress") or params.text("PrimaryIpAddress"),
            "name": params.text("NetworkInterfaceName"),
            "type": params.choice("Type", ("Primary", "Secondary")),
            "status": params.text("Status"),
            "region": call.region,
        },
        ids=params.texts("NetworkInterfaceId") or None,
        max_size=500,
        tags=params.tags(),
    )
    return {"NetworkInterfaceSets": {"NetworkInterfaceSet": [_view(call, doc) for doc in docs]}, **page}


@read("ecs", "DescribeNetworkInterfaceAttribute", "RegionId NetworkInterfaceId! Attribute Tag.N.{Key Value}")
def describe_interface(call: Call) -> dict[str, Any]:
    """One interface."""
    return _view(call, _need_eni(call, call.params.require("NetworkInterfaceId")))


@write(
    "ecs",
    "ModifyNetworkInterfaceAttribute",
    "RegionId NetworkInterfaceId! SecurityGroupId.N NetworkInterfaceName Description QueueNumber DeleteOnRelease "
    "SourceDestCheck ClientToken NetworkInterfaceTrafficConfig.{NetworkInterfaceTrafficMode QueuePairNumber}",
)
def modify_interface(call: Call) -> dict[str, Any]:
    """Change name, description and security groups."""
    params = call.params
    doc = _need_eni(call, params.require("NetworkInterfaceId"))
    if (name := params.optional("NetworkInterfaceName")) is not None:
        doc["name"] = name
    if (description := params.optional("Description")) is not None:
        doc["description"] = description
    doc["delete_on_release"] = params.flag("DeleteOnRelease", doc["delete_on_release"])
    doc["source_dest_check"] = params.flag("SourceDestCheck", doc["source_dest_check"])
    traffic = params.struct("NetworkInterfaceTrafficConfig")
    doc["traffic_mode"] = traffic.choice(
        "NetworkInterfaceTrafficMode", ("Standard", "HighPerformance"), doc["traffic_mode"]
    )
    call.store.update("eni", doc)
    if groups := params.texts("SecurityGroupId"):
        set_groups(call, doc, need_groups(call, groups, doc["vpc_id"]))
    return {}


@write(
    "ecs",
    "AttachNetworkInterface",
    "RegionId NetworkInterfaceId! InstanceId! TrunkNetworkInstanceId WaitForNetworkConfigurationReady NetworkCardIndex "
    "ClientToken",
)
def attach_interface(call: Call) -> dict[str, Any]:
    """Bind a secondary interface to an instance of the same zone and VPC."""
    doc = _need_eni(call, call.params.require("NetworkInterfaceId"))
    instance = call.store.need(
        "instance", call.params.require("InstanceId"), not_found("InvalidInstanceId.NotFound", "InstanceId")
    )
    if doc["status"] != "Available":
        raise ApiError(400, "InvalidOperation.InvalidEniState", "The interface is already bound.")
    if instance["zone"] != doc["zone"]:
        raise ApiError(403, "InvalidOperation.AvailabilityZoneMismatch", "Interface and instance are not in one zone.")
    if instance["vpc_id"] != doc["vpc_id"]:
        raise ApiError(403, "InvalidOperation.VpcMismatch", "Interface and instance are not in one VPC.")
    if instance["status"] not in ("Running", "Stopped"):
        raise ApiError(403, "IncorrectInstanceStatus", "The current status of the resource does not support this.")
    doc.update(instance_id=instance["id"], status="InUse", card_index=call.params.number("NetworkCardIndex"))
    call.store.update("eni", doc)
    call.network_changed()
    return {}


@write("ecs", "DetachNetworkInterface", "RegionId NetworkInterfaceId! InstanceId! TrunkNetworkInstanceId ClientToken")
def detach_interface(call: Call) -> dict[str, Any]:
    """Unbind a secondary interface."""
    doc = _need_eni(call, call.params.require("NetworkInterfaceId"))
    if doc["type"] == "Primary":
        raise ApiError(400, "InvalidOperation.PrimaryEni", "A primary interface cannot be detached.")
    if doc["instance_id"] != call.params.require("InstanceId"):
        raise ApiError(400, "InvalidOperation.DetachNotAttached", "The interface is not bound to this instance.")
    doc.update(instance_id="", status="Available")
    call.store.update("eni", doc)
    call.network_changed()
    return {}


@write("ecs", "DeleteNetworkInterface", "RegionId NetworkInterfaceId! ClientToken")
def delete_interface(call: Call) -> dict[str, Any]:
    """Delete an interface that is bound to nothing."""
    doc = _need_eni(call, call.params.require("NetworkInterfaceId"))
    if doc["status"] != "Available":
        raise ApiError(400, "InvalidOperation.InvalidEniState", "The interface is bound to an instance.")
    for eip in call.store.find("eip", {"instance_id": doc["id"]}):
        eip.update(instance_id="", instance_type="", status="Available")
        call.store.update("eip", eip)
    call.store.delete("eni", doc["id"])
    return {}
