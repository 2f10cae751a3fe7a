"""VPCs, vSwitches and route tables."""

from __future__ import annotations

import ipaddress
from typing import Any

from localcloud.api import ids
from localcloud.api.actions import addresses
from localcloud.api.call import Call, tag_list
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, dependency, invalid, not_found, quota
from localcloud.api.registry import read, write
from localcloud.api.store import Doc

_PRIVATE = tuple(ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


def _cidr(text: str, low: int, high: int) -> ipaddress.IPv4Network:
    try:
        net = ipaddress.IPv4Network(text)
    except ValueError:
        raise ApiError(400, "InvalidCidrBlock.Malformed", "Specified CIDR block is not valid.") from None
    if not low <= net.prefixlen <= high:
        raise ApiError(400, "InvalidCidrBlock.Malformed", "Specified CIDR block is not valid.")
    return net


def need_vpc(call: Call, vpc_id: str) -> Doc:
    """The VPC in the region of the request, or the documented error."""
    doc = call.store.get("vpc", vpc_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("InvalidVpcId.NotFound", "VpcId")
    return doc


def need_vswitch(call: Call, vswitch_id: str, code: str = "InvalidVSwitchId.NotFound") -> Doc:
    """The vSwitch in the region of the request, or the documented error."""
    doc = call.store.get("vswitch", vswitch_id)
    if doc is None or doc["region"] != call.region:
        raise not_found(code, "VSwitchId")
    return doc


def _vpc_view(call: Call, doc: Doc) -> dict[str, Any]:
    return {
        "VpcId": doc["id"],
        "RegionId": doc["region"],
        "Status": "Available",
        "VpcName": doc["name"],
        "Description": doc["description"],
        "CidrBlock": doc["cidr"],
        "CreationTime": iso_seconds(doc["created"]),
        "VRouterId": doc["router_id"],
        "IsDefault": False,
        "OwnerId": call.cloud.account_id,
        "ResourceGroupId": doc["resource_group"],
        "ClassicLinkEnabled": False,
        "EnabledIpv6": bool(doc["ipv6_cidr"]),
        "Ipv6CidrBlock": doc["ipv6_cidr"],
        "Ipv6CidrBlocks": {
            "Ipv6CidrBlock": [{"Ipv6CidrBlock": doc["ipv6_cidr"], "Ipv6Isp": "BGP"}] if doc["ipv6_cidr"] else []
        },
        "DnsHostnameStatus": doc["dns_hostname"],
        "SecondaryCidrBlocks": {"SecondaryCidrBlock": []},
        "UserCidrs": {"UserCidr": doc["user_cidrs"]},
        "VSwitchIds": {"VSwitchId": [item["id"] for item in call.store.find("vswitch", {"vpc_id": doc["id"]})]},
        "NatGatewayIds": {"NatGatewayIds": [item["id"] for item in call.store.find("nat", {"vpc_id": doc["id"]})]},
        "RouterTableIds": {"RouterTableIds": [doc["route_table_id"]]},
        "Tags": tag_list(doc, upper=False),
    }


@write(
    "vpc",
    "CreateVpc",
    "RegionId CidrBlock VpcName Description ClientToken DryRun EnableIpv6 Ipv6Isp Ipv6CidrBlock UserCidr "
    "ResourceGroupId EnableDnsHostname Tag.N.{Key Value}",
)
def create_vpc(call: Call) -> dict[str, Any]:
    """Make a VPC with its system route table."""
    params = call.params
    net = _cidr(params.text("CidrBlock", "172.16.0.0/12"), 8, 28)
    if not any(net.subnet_of(private) for private in _PRIVATE if isinstance(private, ipaddress.IPv4Network)):
        raise ApiError(400, "InvalidCidrBlock.Malformed", "Specified CIDR block is not valid.")
    if call.store.count("vpc", {"region": call.region}) >= call.cloud.knobs.quotas.vpcs:
        raise quota("QuotaExceeded.Vpc", "VPC quota exceeded.")
    vpc_id, router, table = ids.resource_id("vpc"), ids.resource_id("vrt"), ids.resource_id("vtb")
    doc = {
        "id": vpc_id,
        "region": call.region,
        "name": params.text("VpcName"),
        "description": params.text("Description"),
        "cidr": str(net),
        "created": call.now,
        "router_id": router,
        "route_table_id": table,
        "resource_group": params.text("ResourceGroupId", "rg-acfm-default"),
        "ipv6_cidr": f"2408:4005:{int(ids.text(3), 36):x}::/56" if params.flag("EnableIpv6") else "",
        "dns_hostname": "ENABLED" if params.flag("EnableDnsHostname") else "DISABLED",
        "user_cidrs": [item for item in params.text("UserCidr").split(",") if item],
        "tags": params.tags(),
    }
    call.store.insert("vpc", doc)
    call.store.insert(
        "route_table",
        {
            "id": table,
            "region": call.region,
            "vpc_id": vpc_id,
            "router_id": router,
            "name": "",
            "description": "",
            "created": call.now,
            "resource_group": doc["resource_group"],
            "propagation": True,
            "tags": {},
        },
    )
    return {"VpcId": vpc_id, "VRouterId": router, "RouteTableId": table, "ResourceGroupId": doc["resource_group"]}


@read("vpc", "DescribeVpcAttribute", "RegionId VpcId! IsDefault DryRun")
def describe_vpc_attribute(call: Call) -> dict[str, Any]:
    """One VPC."""
    return _vpc_view(call, need_vpc(call, call.params.require("VpcId")))


@read(
    "vpc",
    "DescribeVpcs",
    "RegionId VpcId VpcName IsDefault DryRun ResourceGroupId PageNumber PageSize MaxResults NextToken "
    "VpcOwnerId Tag.N.{Key Value}",
)
def describe_vpcs(call: Call) -> dict[str, Any]:
    """VPCs by id (several separated by commas), name and tags."""
    wanted = [item for item in call.params.text("VpcId").split(",") if item] or None
    docs, page = call.listing(
        "vpc",
        {"region": call.region, "name": call.params.text("VpcName")},
        ids=wanted,
        max_size=50,
        tags=call.params.tags(),
    )
    return {"Vpcs": {"Vpc": [_vpc_view(call, doc) for doc in docs]}, **page}


@write("vpc", "ModifyVpcAttribute", "RegionId VpcId! VpcName Description EnableIPv6 Ipv6Isp EnableDnsHostname")
def modify_vpc_attribute(call: Call) -> dict[str, Any]:
    """Change name, description and DNS host names of a VPC."""
    params = call.params
    doc = need_vpc(call, params.require("VpcId"))
    doc["name"] = params.text("VpcName", doc["name"])
    if (description := params.optional("Description")) is not None:
        doc["description"] = description
    if "EnableDnsHostname" in params:
        doc["dns_hostname"] = "ENABLED" if params.flag("EnableDnsHostname") else "DISABLED"
    if params.flag("EnableIPv6") and not doc["ipv6_cidr"]:
        doc["ipv6_cidr"] = f"2408:4005:{int(ids.text(3), 36):x}::/56"
    call.store.update("vpc", doc)
    return {}


@write("vpc", "DeleteVpc", "RegionId VpcId! ClientToken DryRun ForceDelete")
def delete_vpc(call: Call) -> dict[str, Any]:
    """Delete an empty VPC."""
    doc = need_vpc(call, call.params.require("VpcId"))
    for kind, what in (("vswitch", "VSwitch"), ("nat", "NatGateway"), ("security_group", "SecurityGroup")):
        if call.store.count(kind, {"vpc_id": doc["id"]}):
            raise dependency(
                f"DependencyViolation.{what}", f"There is still a {what} under the specified VPC; it cannot be deleted."
            )
    call.store.delete("route_table", doc["route_table_id"])
    call.store.delete("vpc", doc["id"])
    return {}


# -- vSwitches ---------------------------------------------------------------------------------------------------


def _vswitch_view(call: Call, doc: Doc) -> dict[str, Any]:
    vpc = call.store.get("vpc", doc["vpc_id"]) or {}
    return {
        "VSwitchId": doc["id"],
        "VpcId": doc["vpc_id"],
        "RegionId": doc["region"],
        "ZoneId": doc["zone"],
        "CidrBlock": doc["cidr"],
        "Ipv6CidrBlock": doc["ipv6_cidr"],
        "VSwitchName": doc["name"],
        "Description": doc["description"],
        "Status": "Available",
        "CreationTime": iso_seconds(doc["created"]),
        "AvailableIpAddressCount": addresses.free_count(call.store, doc),
        "IsDefault": False,
        "ShareType": "",
        "OwnerId": call.cloud.account_id,
        "ResourceGroupId": doc["resource_group"],
        "NetworkAclId": "",
        "RouteTable": {"RouteTableId": vpc.get("route_table_id", ""), "RouteTableType": "System"},
        "Tags": tag_list(doc, upper=False),
    }


@write(
    "vpc",
    "CreateVSwitch",
    "RegionId ZoneId! VpcId! CidrBlock! VSwitchName Description ClientToken Ipv6CidrBlock VpcIpv6CidrBlock "
    "Tag.N.{Key Value}",
)
def create_vswitch(call: Call) -> dict[str, Any]:
    """Make a vSwitch in a zone."""
    params = call.params
    vpc = need_vpc(call, params.require("VpcId"))
    zone = params.require("ZoneId")
    call.cloud.offers.check_zone(call.region, zone)
    net = _cidr(params.require("CidrBlock"), 16, 29)
    if not net.subnet_of(ipaddress.IPv4Network(vpc["cidr"])):
        raise ApiError(400, "InvalidCidrBlock.Malformed", "Specified CIDR block is not in the VPC.")
    others = call.store.find("vswitch", {"vpc_id": vpc["id"]})
    if any(net.overlaps(ipaddress.IPv4Network(item["cidr"])) for item in others):
        raise ApiError(400, "InvalidCidrBlock.Overlapped", "Specified CIDR block overlapped with other subnets.")
    if len(others) >= call.cloud.knobs.quotas.vswitches_per_vpc:
        raise quota("QuotaExceeded.VSwitch", "VSwitch quota exceeded.")
    mask = params.text("Ipv6CidrBlock")
    if mask and not vpc["ipv6_cidr"]:
        raise invalid("Ipv6CidrBlock", "The VPC has no IPv6 range.")
    ipv6 = ""
    if mask:
        if not mask.isdecimal() or int(mask) > 255:
            raise invalid("Ipv6CidrBlock", "It is a number from 0 to 255.")
        base = int(ipaddress.IPv6Network(vpc["ipv6_cidr"]).network_address) + (int(mask) << 64)
        ipv6 = str(ipaddress.IPv6Network((base, 64)))
    doc = {
        "id": ids.resource_id("vsw"),
        "region": call.region,
        "zone": zone,
        "vpc_id": vpc["id"],
        "cidr": str(net),
        "ipv6_cidr": ipv6,
        "name": params.text("VSwitchName"),
        "description": params.text("Description"),
        "created": call.now,
        "resource_group": vpc["resource_group"],
        "tags": params.tags(),
    }
    call.store.insert("vswitch", doc)
    call.network_changed()
    return {"VSwitchId": doc["id"]}


@read("vpc", "DescribeVSwitchAttributes", "RegionId VSwitchId! DryRun")
def describe_vswitch_attributes(call: Call) -> dict[str, Any]:
    """One vSwitch."""
    return _vswitch_view(call, need_vswitch(call, call.params.require("VSwitchId"), "InvalidVswitchID.NotFound"))


@read(
    "vpc",
    "DescribeVSwitches",
    "RegionId VpcId VSwitchId ZoneId VSwitchName IsDefault RouteTableId ResourceGroupId DryRun PageNumber PageSize "
    "Tag.N.{Key Value}",
)
def describe_vswitches(call: Call) -> dict[str, Any]:
    """vSwitches by VPC, zone, id, name and tags."""
    params = call.params
    wanted = [item for item in params.text("VSwitchId").split(",") if item] or None
    docs, page = call.listing(
        "vswitch",
        {
            "vpc_id": params.text("VpcId"),
            "zone": params.text("ZoneId"),
            "name": params.text("VSwitchName"),
            "region": call.region,
        },
        ids=wanted,
        max_size=50,
        tags=params.tags(),
    )
    return {"VSwitches": {"VSwitch": [_vswitch_view(call, doc) for doc in docs]}, **page}


@write("vpc", "ModifyVSwitchAttribute", "RegionId VSwitchId! VSwitchName Description EnableIPv6 Ipv6CidrBlock")
def modify_vswitch_attribute(call: Call) -> dict[str, Any]:
    """Change name and description of a vSwitch."""
    params = call.params
    doc = need_vswitch(call, params.require("VSwitchId"))
    doc["name"] = params.text("VSwitchName", doc["name"])
    if (description := params.optional("Description")) is not None:
        doc["description"] = description
    call.store.update("vswitch", doc)
    return {}


@write("vpc", "DeleteVSwitch", "RegionId VSwitchId! DryRun ClientToken")
def delete_vswitch(call: Call) -> dict[str, Any]:
    """Delete a vSwitch that nothing is in any more."""
    doc = need_vswitch(call, call.params.require("VSwitchId"), "InvalidVswitchID.NotFound")
    for kind, what in (("eni", "network interface"), ("nat", "NAT gateway"), ("mount_target", "NAS mount target")):
        if call.store.count(kind, {"vswitch_id": doc["id"]}):
            raise dependency("DependencyViolation", f"There is still a {what} in the specified vSwitch.")
    if call.store.count("snat", {"vswitch_id": doc["id"]}):
        raise dependency("DependencyViolation.SnatEntry", "A SNAT entry still uses the specified vSwitch.")
    call.store.delete("vswitch", doc["id"])
    call.network_changed()
    return {}


# -- route tables ------------------------------------------------------------------------------------------------


def _table_view(call: Call, doc: Doc) -> dict[str, Any]:
    return {
        "RouteTableId": doc["id"],
        "RouteTableName": doc["name"],
        "RouteTableType": "System",
        "RouterId": doc["router_id"],
        "RouterType": "VRouter",
        "VpcId": doc["vpc_id"],
        "Description": doc["description"],
        "CreationTime": iso_seconds(doc["created"]),
        "Status": "Available",
        "AssociateType": "VSwitch",
        "OwnerId": call.cloud.account_id,
        "ResourceGroupId": doc["resource_group"],
        "RoutePropagationEnable": doc["propagation"],
        "VSwitchIds": {"VSwitchId": [item["id"] for item in call.store.find("vswitch", {"vpc_id": doc["vpc_id"]})]},
        "Tags": tag_list(doc, upper=False),
    }


@read(
    "vpc",
    "DescribeRouteTableList",
    "RegionId VpcId RouteTableId RouteTableName RouterId RouterType ResourceGroupId PageNumber PageSize "
    "Tag.N.{Key Value}",
)
def describe_route_table_list(call: Call) -> dict[str, Any]:
    """Route tables of a VPC."""
    table = call.params.text("RouteTableId")
    docs, page = call.listing(
        "route_table",
        {"vpc_id": call.params.text("VpcId"), "region": call.region},
        ids=[table] if table else None,
        max_size=50,
        tags=call.params.tags(),
    )
    router = call.params.text("RouterId")
    views = [_table_view(call, doc) for doc in docs if not router or doc["router_id"] == router]
    return {"RouterTableList": {"RouterTableListType": views}, **page}


@read("vpc", "DescribeRouteTables", "RegionId RouteTableId RouterId VRouterId RouterType PageNumber PageSize")
def describe_route_tables(call: Call) -> dict[str, Any]:
    """Route tables with their entries (those that the cloud makes itself)."""
    table = call.params.text("RouteTableId")
    docs, page = call.listing("route_table", {"region": call.region}, ids=[table] if table else None, max_size=50)
    views = []
    for doc in docs:
        entries = [
            {
                "RouteTableId": doc["id"],
                "DestinationCidrBlock": item["cidr"],
                "Type": "System",
                "Status": "Available",
                "NextHopType": "local",
                "InstanceId": "",
            }
            for item in call.store.find("vswitch", {"vpc_id": doc["vpc_id"]})
        ]
        views.append(
            {
                "RouteTableId": doc["id"],
                "VRouterId": doc["router_id"],
                "RouteTableType": "System",
                "CreationTime": iso_seconds(doc["created"]),
                "RouteEntrys": {"RouteEntry": entries},
            }
        )
    return {"RouteTables": {"RouteTable": views}, **page}


@write(
    "vpc",
    "ModifyRouteTableAttributes",
    "RegionId RouteTableId! RouteTableName Description RoutePropagationEnable",
)
def modify_route_table_attributes(call: Call) -> dict[str, Any]:
    """Change name and description of a route table."""
    params = call.params
    doc = call.store.need(
        "route_table",
        params.require("RouteTableId"),
        not_found("InvalidRouteTableId.NotFound", "RouteTableId"),
    )
    doc["name"] = params.text("RouteTableName", doc["name"])
    doc["description"] = params.text("Description", doc["description"])
    doc["propagation"] = params.flag("RoutePropagationEnable", doc["propagation"])
    call.store.update("route_table", doc)
    return {}


@read("vpc", "DescribeRegions", "ProductType AcceptLanguage")
def describe_regions(call: Call) -> dict[str, Any]:
    """Regions."""
    return {
        "Regions": {
            "Region": [
                {"RegionId": region, "LocalName": name, "RegionEndpoint": ""}
                for region, name in call.cloud.offers.regions()
            ]
        }
    }


@read("vpc", "DescribeZones", "RegionId ZoneType AcceptLanguage")
def describe_zones(call: Call) -> dict[str, Any]:
    """Zones of the region."""
    return {"Zones": {"Zone": [{"ZoneId": zone, "LocalName": zone} for zone in call.cloud.offers.zones(call.region)]}}
