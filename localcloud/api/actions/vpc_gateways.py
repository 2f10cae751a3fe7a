"""Elastic IP addresses, NAT gateways and SNAT entries."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from localcloud.api import ids
from localcloud.api.actions.vpc import need_vpc, need_vswitch
from localcloud.api.call import Call, tag_list
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, dependency, invalid, not_found, quota
from localcloud.api.registry import read, write
from localcloud.api.store import Doc

#: Range of the elastic addresses: reserved for tests of network gear (RFC 2544), so nobody's real address.
_POOL = ipaddress.IPv4Network("198.18.0.0/16")
_KINDS = {"ecsinstance": "EcsInstance", "nat": "Nat", "networkinterface": "NetworkInterface"}


def _addresses(account_id: str) -> Iterator[str]:
    """Addresses in the order in which they are given out: clouds on one machine begin in different blocks of 256."""
    blocks = list(_POOL.subnets(new_prefix=24))
    first = 1 + int(account_id) % (len(blocks) - 1)
    for block in (*blocks[first:], *blocks[:first]):
        yield from (str(host) for host in block.hosts())


def _need_eip(call: Call, allocation_id: str) -> Doc:
    doc = call.store.get("eip", allocation_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("InvalidAllocationId.NotFound", "AllocationId")
    return doc


def _eip_view(doc: Doc) -> dict[str, Any]:
    return {
        "AllocationId": doc["id"],
        "IpAddress": doc["address"],
        "RegionId": doc["region"],
        "Status": doc["status"],
        "InstanceId": doc["instance_id"],
        "InstanceType": doc["instance_type"],
        "InstanceRegionId": doc["region"] if doc["instance_id"] else "",
        "Name": doc["name"],
        "Description": doc["description"],
        "Descritpion": doc["description"],  # spelled so by the real service
        "Bandwidth": str(doc["bandwidth"]),
        "EipBandwidth": str(doc["bandwidth"]),
        "InternetChargeType": doc["internet_charge"],
        "ChargeType": "PostPaid",
        "ISP": doc["isp"],
        "Netmode": "public",
        "Mode": "NAT" if doc["instance_id"] else "",
        "AllocationTime": iso_seconds(doc["created"]),
        "ExpiredTime": "",
        "ResourceGroupId": doc["resource_group"],
        "DeletionProtection": False,
        "HDMonitorStatus": "OFF",
        "PrivateIpAddress": doc.get("private_ip", ""),
        "SecurityProtectionTypes": {"SecurityProtectionType": []},
        "OperationLocks": {"LockReason": []},
        "Tags": tag_list(doc, upper=False),
    }


@write(
    "vpc",
    "AllocateEipAddress",
    "RegionId Bandwidth InternetChargeType InstanceChargeType ISP Netmode Name Description ClientToken "
    "ResourceGroupId Period PricingCycle AutoPay ActivityId PublicIpAddressPoolId Tag.N.{Key Value}",
)
def allocate_eip(call: Call) -> dict[str, Any]:
    """Get an elastic address."""
    params = call.params
    taken = set(call.store.values("eip", "address"))
    if call.store.count("eip", {"region": call.region}) >= call.cloud.knobs.quotas.eips:
        raise quota("QuotaExceeded.Eip", "Elastic IP address quota exceeded.")
    address = next(found for found in _addresses(call.cloud.account_id) if found not in taken)
    doc = {
        "id": ids.resource_id("eip"),
        "region": call.region,
        "address": address,
        "status": "Available",
        "instance_id": "",
        "instance_type": "",
        "name": params.text("Name"),
        "description": params.text("Description"),
        "bandwidth": params.number("Bandwidth", 5, 1, 1000),
        "internet_charge": params.choice("InternetChargeType", ("PayByBandwidth", "PayByTraffic"), "PayByBandwidth"),
        "isp": params.text("ISP", "BGP"),
        "created": call.now,
        "resource_group": params.text("ResourceGroupId", "rg-acfm-default"),
        "tags": params.tags(),
    }
    call.store.insert("eip", doc)
    return {"AllocationId": doc["id"], "EipAddress": address, "ResourceGroupId": doc["resource_group"]}


@read(
    "vpc",
    "DescribeEipAddresses",
    "RegionId AllocationId EipAddress EipName Status AssociatedInstanceId AssociatedInstanceType ResourceGroupId "
    "ChargeType ISP DryRun PageNumber PageSize Tag.N.{Key Value}",
)
def describe_eips(call: Call) -> dict[str, Any]:
    """Elastic addresses by id, address, status and what they are bound to."""
    params = call.params
    wanted = [item for item in params.text("AllocationId").split(",") if item] or None
    docs, page = call.listing(
        "eip",
        {
            "region": call.region,
            "address": [item for item in params.text("EipAddress").split(",") if item],
            "status": params.text("Status"),
            "instance_id": params.text("AssociatedInstanceId"),
        },
        ids=wanted,
        tags=params.tags(),
    )
    return {"EipAddresses": {"EipAddress": [_eip_view(doc) for doc in docs]}, **page}


@write(
    "vpc",
    "AssociateEipAddress",
    "RegionId AllocationId! InstanceId! InstanceType PrivateIpAddress ClientToken Mode VpcId InstanceRegionId",
)
def associate_eip(call: Call) -> dict[str, Any]:
    """Bind an elastic address to an instance, an interface or a NAT gateway."""
    params = call.params
    doc = _need_eip(call, params.require("AllocationId"))
    target = params.require("InstanceId")
    kind = _KINDS.get(params.text("InstanceType", "EcsInstance").lower())
    if kind is None:
        raise invalid("InstanceType")
    if doc["status"] != "Available":
        raise ApiError(400, "IncorrectEipStatus", "Current elastic IP status does not support this operation.")
    if kind == "EcsInstance":
        instance = call.store.get("instance", target)
        if instance is None:
            raise not_found("InvalidInstanceId.NotFound", "InstanceId")
        if instance["status"] not in ("Running", "Stopped"):
            raise ApiError(400, "IncorrectInstanceStatus", "Current instance status does not support this operation.")
        if call.store.count("eip", {"instance_id": target}):
            raise ApiError(400, "InvalidInstance.AlreadyBound", "The instance already has an elastic IP address.")
    elif call.store.get("nat" if kind == "Nat" else "eni", target) is None:
        raise not_found("InvalidInstanceId.NotFound", "InstanceId")
    # The real service shows the private address of a binding only where the request named one.
    doc.update(instance_id=target, instance_type=kind, status="InUse", private_ip=params.text("PrivateIpAddress"))
    call.store.update("eip", doc)
    call.network_changed()
    return {}


@write(
    "vpc",
    "UnassociateEipAddress",
    "RegionId AllocationId! InstanceId InstanceType PrivateIpAddress Force ClientToken InstanceRegionId",
)
def unassociate_eip(call: Call) -> dict[str, Any]:
    """Unbind an elastic address."""
    doc = _need_eip(call, call.params.require("AllocationId"))
    if not doc["instance_id"]:
        raise ApiError(400, "IncorrectEipStatus", "Current elastic IP status does not support this operation.")
    if call.store.count("snat", {"snat_ips": doc["address"]}):
        raise dependency("InvalidIpStatus.HasBeenUsedBySnatTable", "The elastic IP address is used by a SNAT entry.")
    unbind(call, doc)
    return {}


def unbind(call: Call, doc: Doc) -> None:
    """Make an elastic address free again."""
    doc.update(instance_id="", instance_type="", status="Available", private_ip="")
    call.store.update("eip", doc)
    call.network_changed()


@write("vpc", "ReleaseEipAddress", "RegionId AllocationId! ClientToken DryRun")
def release_eip(call: Call) -> dict[str, Any]:
    """Give an elastic address back."""
    doc = _need_eip(call, call.params.require("AllocationId"))
    if doc["instance_id"]:
        raise ApiError(400, "IncorrectEipStatus", "Current elastic IP status does not support this operation.")
    call.store.delete("eip", doc["id"])
    return {}


@write("vpc", "ModifyEipAddressAttribute", "RegionId AllocationId! Bandwidth Name Description ClientToken")
def modify_eip(call: Call) -> dict[str, Any]:
    """Change bandwidth, name and description."""
    params = call.params
    doc = _need_eip(call, params.require("AllocationId"))
    doc["bandwidth"] = params.number("Bandwidth", doc["bandwidth"], 1, 1000)
    doc["name"] = params.text("Name", doc["name"])
    doc["description"] = params.text("Description", doc["description"])
    call.store.update("eip", doc)
    return {}


# -- NAT gateways ------------------------------------------------------------------------------------------------


def _need_nat(call: Call, nat_id: str) -> Doc:
    doc = call.store.get("nat", nat_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("InvalidNatGatewayId.NotFound", "NatGatewayId")
    return doc


def _nat_view(call: Call, doc: Doc) -> dict[str, Any]:
    eips = call.store.find("eip", {"instance_id": doc["id"]})
    return {
        "NatGatewayId": doc["id"],
        "VpcId": doc["vpc_id"],
        "RegionId": doc["region"],
        "Name": doc["name"],
        "Description": doc["description"],
        "NatType": doc["nat_type"],
        "NetworkType": doc["network_type"],
        "Spec": doc["spec"],
        "Status": "Available",
        "BusinessStatus": "Normal",
        "CreationTime": iso_seconds(doc["created"]),
        "ExpiredTime": "",
        "InstanceChargeType": "PostPaid",
        "InternetChargeType": doc["internet_charge"],
        "AutoPay": False,
        "DeletionProtection": doc["deletion_protection"],
        "EcsMetricEnabled": False,
        "IcmpReplyEnabled": doc["icmp_reply"],
        "PrivateLinkEnabled": False,
        "SecurityProtectionEnabled": False,
        "EipBindMode": doc["eip_bind_mode"],
        "ResourceGroupId": doc["resource_group"],
        "NatGatewayPrivateInfo": {
            "VswitchId": doc["vswitch_id"],
            "IzNo": doc["zone"],
            "EniInstanceId": "",
            "EniType": "",
            "PrivateIpAddress": "",
            "MaxBandwidth": 5120,
        },
        "ForwardTableIds": {"ForwardTableId": [doc["forward_table_id"]]},
        "SnatTableIds": {"SnatTableId": [doc["snat_table_id"]]},
        "FullNatTableIds": {"FullNatTableId": []},
        "IpLists": {
            "IpList": [
                {
                    "AllocationId": eip["id"],
                    "IpAddress": eip["address"],
                    "PrivateIpAddress": "",
                    "SnatEntryEnabled": bool(call.store.count("snat", {"snat_ips": eip["address"]})),
                    "ApAccessEnabled": False,
                    "UsingStatus": "UsedBySnatTable"
                    if call.store.count("snat", {"snat_ips": eip["address"]})
                    else "Idle",
                }
                for eip in eips
            ]
        },
        "Tags": tag_list(doc),
    }


@write(
    "vpc",
    "CreateNatGateway",
    "RegionId VpcId! VSwitchId Name Description Spec NatType NetworkType InstanceChargeType InternetChargeType "
    "ClientToken Duration PricingCycle AutoPay EipBindMode IcmpReplyEnabled SecurityProtectionEnabled "
    "PrivateLinkEnabled Tag.N.{Key Value}",
)
def create_nat(call: Call) -> dict[str, Any]:
    """Make an enhanced NAT gateway in a vSwitch."""
    params = call.params
    vpc = need_vpc(call, params.require("VpcId"))
    vswitch = need_vswitch(call, params.require("VSwitchId"))
    if vswitch["vpc_id"] != vpc["id"]:
        raise invalid("VSwitchId", "It is not in the VPC.")
    if params.choice("InstanceChargeType", ("PostPaid", "PrePaid"), "PostPaid") == "PrePaid":
        raise ApiError(400, "UnsupportedOperation", "This cloud has NAT gateways with pay-as-you-go only.")
    doc = {
        "id": ids.resource_id("ngw"),
        "region": call.region,
        "vpc_id": vpc["id"],
        "vswitch_id": vswitch["id"],
        "zone": vswitch["zone"],
        "name": params.text("Name"),
        "description": params.text("Description"),
        "spec": params.text("Spec"),
        "nat_type": params.text("NatType", "Enhanced"),
        "network_type": params.text("NetworkType", "internet"),
        "internet_charge": params.text("InternetChargeType", "PayByLcu"),
        "eip_bind_mode": params.text("EipBindMode", "MULTI_BINDED"),
        "icmp_reply": params.flag("IcmpReplyEnabled", True),
        "deletion_protection": False,
        "forward_table_id": ids.resource_id("ftb"),
        "snat_table_id": ids.resource_id("stb"),
        "created": call.now,
        "resource_group": "rg-acfm-default",
        "tags": params.tags(),
    }
    call.store.insert("nat", doc)
    return {
        "NatGatewayId": doc["id"],
        "ForwardTableIds": {"ForwardTableId": [doc["forward_table_id"]]},
        "SnatTableIds": {"SnatTableId": [doc["snat_table_id"]]},
        "FullNatTableIds": {"FullNatTableId": []},
    }


@read(
    "vpc",
    "DescribeNatGateways",
    "RegionId NatGatewayId VpcId VSwitchId ZoneId Name NatType NetworkType Spec Status InstanceChargeType DryRun "
    "ResourceGroupId PageNumber PageSize Tag.N.{Key Value}",
)
def describe_nats(call: Call) -> dict[str, Any]:
    """NAT gateways."""
    params = call.params
    wanted = params.text("NatGatewayId")
    docs, page = call.listing(
        "nat",
        {"vpc_id": params.text("VpcId"), "vswitch_id": params.text("VSwitchId"), "region": call.region},
        ids=[wanted] if wanted else None,
        max_size=50,
        tags=params.tags(),
    )
    return {"NatGateways": {"NatGateway": [_nat_view(call, doc) for doc in docs]}, **page}


@read("vpc", "GetNatGatewayAttribute", "RegionId NatGatewayId! ClientToken")
def get_nat(call: Call) -> dict[str, Any]:
    """One NAT gateway, in the form that this action alone has."""
    doc = _need_nat(call, call.params.require("NatGatewayId"))
    view = _nat_view(call, doc)
    keep = (
        "NatGatewayId", "VpcId", "RegionId", "Name", "Description", "NatType", "NetworkType", "Status",
        "BusinessStatus", "CreationTime", "ExpiredTime", "EcsMetricEnabled", "PrivateLinkEnabled", "ResourceGroupId",
    )  # fmt: skip
    return {
        **{key: view[key] for key in keep},
        "BillingConfig": {key: view[key] for key in ("AutoPay", "InstanceChargeType", "InternetChargeType", "Spec")},
        "PrivateInfo": {key: value for key, value in view["NatGatewayPrivateInfo"].items() if key != "EniType"},
        "DeletionProtectionInfo": {"Enabled": view["DeletionProtection"]},
        "ForwardTable": {"ForwardTableId": doc["forward_table_id"], "ForwardEntryCount": 0},
        "SnatTable": {
            "SnatTableId": doc["snat_table_id"],
            "SnatEntryCount": call.store.count("snat", {"nat_id": doc["id"]}),
        },
        "IpList": [
            {key: item[key] for key in ("AllocationId", "IpAddress", "UsingStatus")}
            for item in view["IpLists"]["IpList"]
        ],
    }


@write(
    "vpc",
    "ModifyNatGatewayAttribute",
    "RegionId NatGatewayId! Name Description IcmpReplyEnabled EipBindMode ClientToken",
)
def modify_nat(call: Call) -> dict[str, Any]:
    """Change name and description."""
    params = call.params
    doc = _need_nat(call, params.require("NatGatewayId"))
    doc["name"] = params.text("Name", doc["name"])
    doc["description"] = params.text("Description", doc["description"])
    doc["icmp_reply"] = params.flag("IcmpReplyEnabled", doc["icmp_reply"])
    doc["eip_bind_mode"] = params.text("EipBindMode", doc["eip_bind_mode"])
    call.store.update("nat", doc)
    return {}


@write("vpc", "DeletionProtection", "RegionId InstanceId! Type! ProtectionEnable! ClientToken")
def deletion_protection(call: Call) -> dict[str, Any]:
    """Protect a NAT gateway from deletion, or no longer."""
    if call.params.require("Type").upper() != "NATGW":
        raise ApiError(400, "UnsupportedOperation", "This cloud protects NAT gateways only.")
    doc = _need_nat(call, call.params.require("InstanceId"))
    doc["deletion_protection"] = call.params.flag("ProtectionEnable")
    call.store.update("nat", doc)
    return {}


@write("vpc", "DeleteNatGateway", "RegionId NatGatewayId! Force ClientToken")
def delete_nat(call: Call) -> dict[str, Any]:
    """Delete a NAT gateway; with Force its SNAT entries and bound addresses go first."""
    doc = _need_nat(call, call.params.require("NatGatewayId"))
    force = call.params.flag("Force")
    if doc["deletion_protection"]:
        raise dependency("OperationDenied.DeletionProtection", "The NAT gateway is protected from deletion.")
    entries, eips = call.store.find("snat", {"nat_id": doc["id"]}), call.store.find("eip", {"instance_id": doc["id"]})
    if entries and not force:
        raise dependency("DependencyViolation.SnatEntry", "The NAT gateway still has SNAT entries.")
    if eips and not force:
        raise dependency("DependencyViolation.EIPS", "The NAT gateway still has elastic IP addresses.")
    for entry in entries:
        call.store.delete("snat", entry["id"])
    for eip in eips:
        unbind(call, eip)
    call.store.delete("nat", doc["id"])
    call.network_changed()
    return {}


def _need_snat_table(call: Call, table: str) -> Doc:
    for doc in call.store.find("nat", {"region": call.region}):
        if doc["snat_table_id"] == table:
            return doc
    raise not_found("InvalidSnatTableId.NotFound", "SnatTableId")


def _snat_ips(call: Call, nat: Doc, text: str) -> list[str]:
    bound = {eip["address"] for eip in call.store.find("eip", {"instance_id": nat["id"]})}
    addresses = [item.strip() for item in text.split(",") if item.strip()]
    if not addresses or not set(addresses) <= bound:
        raise invalid("SnatIp", "Each address must be an elastic IP address bound to the NAT gateway.")
    return addresses


@write(
    "vpc",
    "CreateSnatEntry",
    "RegionId SnatTableId! SnatIp! SourceVSwitchId SourceCIDR SnatEntryName EipAffinity ClientToken",
)
def create_snat(call: Call) -> dict[str, Any]:
    """Let a vSwitch or a range out through the addresses of a NAT gateway."""
    params = call.params
    nat = _need_snat_table(call, params.require("SnatTableId"))
    addresses = _snat_ips(call, nat, params.require("SnatIp"))
    vswitch_id, cidr = params.text("SourceVSwitchId"), params.text("SourceCIDR")
    if bool(vswitch_id) == bool(cidr):
        raise invalid("SourceVSwitchId", "Give exactly one of SourceVSwitchId and SourceCIDR.")
    if vswitch_id:
        vswitch = need_vswitch(call, vswitch_id)
        if vswitch["vpc_id"] != nat["vpc_id"]:
            raise invalid("SourceVSwitchId", "It is not in the VPC of the NAT gateway.")
        if call.store.count("snat", {"vswitch_id": vswitch_id}):
            raise ApiError(
                400, "Forbidden.SourceVSwitchId.Duplicated", "The vSwitch already has a SNAT entry in this table."
            )
    else:
        try:
            ipaddress.IPv4Network(cidr)
        except ValueError:
            raise invalid("SourceCIDR") from None
    doc = {
        "id": ids.resource_id("snat"),
        "region": call.region,
        "nat_id": nat["id"],
        "vpc_id": nat["vpc_id"],
        "snat_table_id": nat["snat_table_id"],
        "snat_ips": addresses,
        "vswitch_id": vswitch_id,
        "source_cidr": cidr or need_vswitch(call, vswitch_id)["cidr"],
        "name": params.text("SnatEntryName"),
        "eip_affinity": params.number("EipAffinity", 0, 0, 1),
    }
    call.store.insert("snat", doc)
    call.network_changed()
    return {"SnatEntryId": doc["id"]}


@read(
    "vpc",
    "DescribeSnatTableEntries",
    "RegionId SnatTableId SnatEntryId NatGatewayId SnatIp SnatEntryName SourceCIDR SourceVSwitchId PageNumber PageSize",
)
def describe_snat(call: Call) -> dict[str, Any]:
    """SNAT entries of a table or of a NAT gateway."""
    params = call.params
    wanted = params.text("SnatEntryId")
    docs, page = call.listing(
        "snat",
        {
            "snat_table_id": params.text("SnatTableId"),
            "nat_id": params.text("NatGatewayId"),
            "vswitch_id": params.text("SourceVSwitchId"),
        },
        ids=[wanted] if wanted else None,
        max_size=50,
    )
    views = [
        {
            "SnatEntryId": doc["id"],
            "SnatTableId": doc["snat_table_id"],
            "NatGatewayId": doc["nat_id"],
            "SnatIp": ",".join(doc["snat_ips"]),
            "SourceCIDR": doc["source_cidr"],
            "SourceVSwitchId": doc["vswitch_id"],
            "SnatEntryName": doc["name"],
            "EipAffinity": str(doc["eip_affinity"]),
            "Status": "Available",
        }
        for doc in docs
    ]
    return {"SnatTableEntries": {"SnatTableEntry": views}, **page}


@write(
    "vpc",
    "ModifySnatEntry",
    "RegionId SnatTableId! SnatEntryId! SnatIp SnatEntryName EipAffinity ClientToken",
)
def modify_snat(call: Call) -> dict[str, Any]:
    """Change addresses and name of a SNAT entry."""
    params = call.params
    nat = _need_snat_table(call, params.require("SnatTableId"))
    doc = call.store.need(
        "snat", params.require("SnatEntryId"), not_found("InvalidSnatEntryId.NotFound", "SnatEntryId")
    )
    if "SnatIp" in params:
        doc["snat_ips"] = _snat_ips(call, nat, params.require("SnatIp"))
    doc["name"] = params.text("SnatEntryName", doc["name"])
    call.store.update("snat", doc)
    return {}


@write("vpc", "DeleteSnatEntry", "RegionId SnatTableId! SnatEntryId! ClientToken")
def delete_snat(call: Call) -> dict[str, Any]:
    """Delete a SNAT entry."""
    _need_snat_table(call, call.params.require("SnatTableId"))
    entry = call.params.require("SnatEntryId")
    call.store.need("snat", entry, not_found("InvalidSnatEntryId.NotFound", "SnatEntryId"))
    call.store.delete("snat", entry)
    call.network_changed()
    return {}
