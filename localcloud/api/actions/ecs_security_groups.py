"""Security groups and their rules."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from localcloud.api import ids
from localcloud.api.actions.vpc import need_vpc
from localcloud.api.call import Call, tag_list
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, dependency, invalid, not_found, quota
from localcloud.api.params import Params
from localcloud.api.registry import read, write
from localcloud.api.store import Doc

_PROTOCOLS = ("tcp", "udp", "icmp", "icmpv6", "gre", "all")
_RULE = (
    "IpProtocol PortRange Policy Priority NicType Description SourceCidrIp SourceGroupId SourceGroupOwnerAccount "
    "SourceGroupOwnerId SourcePortRange Ipv6SourceCidrIp DestCidrIp DestGroupId DestGroupOwnerAccount "
    "DestGroupOwnerId Ipv6DestCidrIp"
)
_RULES = f"RegionId SecurityGroupId! ClientToken {_RULE} Permissions.N.{{{_RULE}}}"


def need_group(call: Call, group_id: str) -> Doc:
    """The security group in the region of the request, or the documented error."""
    doc = call.store.get("security_group", group_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("InvalidSecurityGroupId.NotFound", "SecurityGroupId")
    return doc


def need_groups(call: Call, group_ids: list[str], vpc_id: str) -> list[str]:
    """Check that the groups exist, are in the VPC and are not too many for one interface."""
    unique = list(dict.fromkeys(group_ids))
    for group_id in unique:
        if need_group(call, group_id)["vpc_id"] != vpc_id:
            raise ApiError(
                403,
                "InvalidSecurityGroupId.VPCMismatch",
                "The specified security group and the specified virtual switch are not in the same VPC.",
            )
    if len(unique) > call.cloud.knobs.quotas.security_groups_per_interface:
        raise quota("SecurityGroupLimitExceeded", "The maximum number of security groups of an interface is reached.")
    return unique


@write(
    "ecs",
    "CreateSecurityGroup",
    "RegionId VpcId! SecurityGroupName Description SecurityGroupType ResourceGroupId ClientToken Tag.N.{Key Value key "
    "value}",
)
def create_security_group(call: Call) -> dict[str, Any]:
    """Make a security group in a VPC."""
    params = call.params
    vpc = need_vpc(call, params.require("VpcId"))
    if call.store.count("security_group", {"region": call.region}) >= call.cloud.knobs.quotas.security_groups:
        raise quota("QuotaExceed.SecurityGroup", "The maximum number of security groups is reached.")
    kind = params.choice("SecurityGroupType", ("normal", "enterprise"), "normal")
    doc = {
        "id": ids.resource_id("sg"),
        "region": call.region,
        "vpc_id": vpc["id"],
        "name": params.text("SecurityGroupName"),
        "description": params.text("Description"),
        "type": kind,
        "inner_access": "Accept" if kind == "normal" else "Drop",
        "created": call.now,
        "resource_group": params.text("ResourceGroupId", "rg-acfm-default"),
        "tags": params.tags(),
    }
    call.store.insert("security_group", doc)
    call.network_changed()
    return {"SecurityGroupId": doc["id"]}


def _parse_rule(params: Params, direction: str, group: Doc, call: Call) -> Doc:
    protocol = params.choice("IpProtocol", _PROTOCOLS).lower()
    if not protocol:
        raise ApiError(400, "MissingParameter.IpProtocol", "The parameter IpProtocol is mandatory.")
    ports = params.text("PortRange", "-1/-1" if protocol not in ("tcp", "udp") else "")
    match = re.fullmatch(r"(-?\d+)/(-?\d+)", ports)
    if match is None:
        raise ApiError(400, "InvalidPortRange.Malformed", "The specified parameter PortRange is not valid.")
    low, high = int(match.group(1)), int(match.group(2))
    if protocol in ("tcp", "udp"):
        if not 1 <= low <= high <= 65535:
            raise ApiError(400, "InvalidPortRange.Malformed", "The specified parameter PortRange is not valid.")
    elif (low, high) != (-1, -1):
        raise ApiError(400, "InvalidPortRange.Malformed", "PortRange must be -1/-1 for this protocol.")
    side = "Source" if direction == "ingress" else "Dest"
    other = "Dest" if direction == "ingress" else "Source"
    cidr = params.text(f"{side}CidrIp") or params.text(f"Ipv6{side}CidrIp")
    peer = params.text(f"{side}GroupId")
    if direction == "ingress" and not cidr and not peer and params.text(f"{other}CidrIp"):
        raise ApiError(400, "MissingParameter.SourceCidrIp", "SourceCidrIp or SourceGroupId is mandatory.")
    if bool(cidr) == bool(peer):
        raise ApiError(
            400 if not cidr else 403,
            f"MissingParameter.{side}" if not cidr else "InvalidParameter.Conflict",
            f"Give exactly one of {side}CidrIp, Ipv6{side}CidrIp and {side}GroupId.",
        )
    if cidr:
        try:
            net = ipaddress.ip_network(cidr, strict=False)
            cidr = str(net) if "/" in cidr else cidr
        except ValueError:
            raise ApiError(
                400, f"Invalid{side}CidrIp.Malformed", f"The specified parameter {side}CidrIp is not valid."
            ) from None
    if peer and need_group(call, peer)["vpc_id"] != group["vpc_id"]:
        raise ApiError(403, "InvalidGroupAuthorization.VPCMismatch", "Both groups must be in the same VPC.")
    return {
        "direction": direction,
        "protocol": protocol,
        "port_range": ports,
        "cidr": cidr,
        "peer_group_id": peer,
        "policy": params.choice("Policy", ("Accept", "Drop"), "Accept"),
        "priority": params.number("Priority", 1, 1, 100),
        "description": params.text("Description"),
    }


def _rule_inputs(call: Call) -> list[Params]:
    found = call.params.structs("Permissions")
    return found or [call.params]


_IDENTITY = ("direction", "protocol", "port_range", "cidr", "peer_group_id", "policy", "priority")


def _authorize(call: Call, direction: str) -> dict[str, Any]:
    group = need_group(call, call.params.require("SecurityGroupId"))
    existing = call.store.find("rule", {"group_id": group["id"]})
    for params in _rule_inputs(call):
        rule = _parse_rule(params, direction, group, call)
        if any(all(item[key] == rule[key] for key in _IDENTITY) for item in existing):
            continue  # the real service answers success without a second rule
        if len(existing) >= call.cloud.knobs.quotas.rules_per_security_group:
            raise quota("AuthorizationLimitExceed", "The limit of authorization records in the group is reached.")
        rule.update(id=ids.resource_id("sgr"), group_id=group["id"], created=call.now)
        call.store.insert("rule", rule)
        existing.append(rule)
    call.network_changed()
    return {}


def _revoke(call: Call, direction: str) -> dict[str, Any]:
    group = need_group(call, call.params.require("SecurityGroupId"))
    existing = call.store.find("rule", {"group_id": group["id"]})
    wanted_ids = set(call.params.texts("SecurityGroupRuleId"))
    if wanted_ids:
        for rule in existing:
            if rule["id"] in wanted_ids and rule["direction"] == direction:
                call.store.delete("rule", rule["id"])
    else:
        for params in _rule_inputs(call):
            wanted = _parse_rule(params, direction, group, call)
            for rule in existing:
                if all(rule[key] == wanted[key] for key in _IDENTITY):
                    call.store.delete("rule", rule["id"])
    call.network_changed()
    return {}


@write("ecs", "AuthorizeSecurityGroup", _RULES)
def authorize_ingress(call: Call) -> dict[str, Any]:
    """Add ingress rules."""
    return _authorize(call, "ingress")


@write("ecs", "AuthorizeSecurityGroupEgress", _RULES)
def authorize_egress(call: Call) -> dict[str, Any]:
    """Add egress rules."""
    return _authorize(call, "egress")


@write("ecs", "RevokeSecurityGroup", _RULES + " SecurityGroupRuleId.N")
def revoke_ingress(call: Call) -> dict[str, Any]:
    """Remove ingress rules; one that does not exist is not an error."""
    return _revoke(call, "ingress")


@write("ecs", "RevokeSecurityGroupEgress", _RULES + " SecurityGroupRuleId.N")
def revoke_egress(call: Call) -> dict[str, Any]:
    """Remove egress rules; one that does not exist is not an error."""
    return _revoke(call, "egress")


def _rule_view(call: Call, rule: Doc) -> dict[str, Any]:
    ingress = rule["direction"] == "ingress"
    v6 = ":" in rule["cidr"]
    view = {
        "SecurityGroupRuleId": rule["id"],
        "Direction": rule["direction"],
        "IpProtocol": rule["protocol"].upper(),
        "PortRange": rule["port_range"],
        "SourcePortRange": "",
        "Policy": rule["policy"],
        "Priority": str(rule["priority"]),
        "NicType": "intranet",
        "Description": rule["description"],
        "CreateTime": iso_seconds(rule["created"]),
    }
    for side in ("Source", "Dest"):
        mine = (side == "Source") == ingress
        view[f"{side}CidrIp"] = rule["cidr"] if mine and not v6 else ""
        view[f"Ipv6{side}CidrIp"] = rule["cidr"] if mine and v6 else ""
        view[f"{side}GroupId"] = rule["peer_group_id"] if mine else ""
        view[f"{side}GroupName"] = ""
        view[f"{side}GroupOwnerAccount"] = ""
        view[f"{side}PrefixListId"] = ""
        view[f"{side}PrefixListName"] = ""
    return view


@read(
    "ecs",
    "DescribeSecurityGroupAttribute",
    "RegionId SecurityGroupId! Direction NicType Attribute MaxResults NextToken",
)
def describe_security_group_attribute(call: Call) -> dict[str, Any]:
    """A security group with its rules."""
    group = need_group(call, call.params.require("SecurityGroupId"))
    direction = call.params.choice("Direction", ("ingress", "egress", "all"), "all")
    rules = [
        rule for rule in call.store.find("rule", {"group_id": group["id"]}) if direction in ("all", rule["direction"])
    ]
    return {
        "RegionId": group["region"],
        "SecurityGroupId": group["id"],
        "SecurityGroupName": group["name"],
        "Description": group["description"],
        "VpcId": group["vpc_id"],
        "InnerAccessPolicy": group["inner_access"],
        "Permissions": {"Permission": [_rule_view(call, rule) for rule in rules]},
        "NextToken": "",
    }


@read(
    "ecs",
    "DescribeSecurityGroups",
    "RegionId SecurityGroupId SecurityGroupIds SecurityGroupName SecurityGroupType VpcId NetworkType ResourceGroupId "
    "IsQueryEcsCount FuzzyQuery DryRun PageNumber PageSize MaxResults NextToken Tag.N.{Key Value key value}",
)
def describe_security_groups(call: Call) -> dict[str, Any]:
    """Security groups by id, name, VPC and tags."""
    params = call.params
    wanted = params.json_texts("SecurityGroupIds") or (
        [params.text("SecurityGroupId")] if "SecurityGroupId" in params else []
    )
    docs, page = call.listing(
        "security_group",
        {"vpc_id": params.text("VpcId"), "name": params.text("SecurityGroupName"), "region": call.region},
        ids=wanted or None,
        tags=params.tags(),
    )
    views = []
    for doc in docs:
        rules = call.store.find("rule", {"group_id": doc["id"]})
        views.append(
            {
                "SecurityGroupId": doc["id"],
                "SecurityGroupName": doc["name"],
                "SecurityGroupType": doc["type"],
                "Description": doc["description"],
                "VpcId": doc["vpc_id"],
                "CreationTime": iso_seconds(doc["created"]),
                "ResourceGroupId": doc["resource_group"],
                "ServiceManaged": False,
                "ServiceID": 0,
                "AvailableInstanceAmount": 2000,
                "EcsCount": call.store.count("instance", {"security_group_ids": doc["id"]}),
                "RuleCount": len(rules),
                "GroupToGroupRuleCount": sum(1 for rule in rules if rule["peer_group_id"]),
                "Tags": tag_list(doc),
            }
        )
    return {"RegionId": call.region, "SecurityGroups": {"SecurityGroup": views}, **page}


@read("ecs", "DescribeSecurityGroupReferences", "RegionId SecurityGroupId.N!")
def describe_references(call: Call) -> dict[str, Any]:
    """Which groups have rules that name these groups."""
    result = []
    for group_id in call.params.texts("SecurityGroupId"):
        need_group(call, group_id)
        peers = {rule["group_id"] for rule in call.store.find("rule", {"peer_group_id": group_id})} - {group_id}
        if peers:
            result.append(
                {
                    "SecurityGroupId": group_id,
                    "ReferencingSecurityGroups": {
                        "ReferencingSecurityGroup": [
                            {"SecurityGroupId": peer, "AliUid": call.cloud.account_id} for peer in sorted(peers)
                        ]
                    },
                }
            )
    return {"SecurityGroupReferences": {"SecurityGroupReference": result}}


@write("ecs", "ModifySecurityGroupAttribute", "RegionId SecurityGroupId! SecurityGroupName Description")
def modify_security_group(call: Call) -> dict[str, Any]:
    """Change name and description."""
    doc = need_group(call, call.params.require("SecurityGroupId"))
    doc["name"] = call.params.text("SecurityGroupName", doc["name"])
    if (description := call.params.optional("Description")) is not None:
        doc["description"] = description
    call.store.update("security_group", doc)
    return {}


@write("ecs", "ModifySecurityGroupPolicy", "RegionId SecurityGroupId! InnerAccessPolicy! ClientToken")
def modify_security_group_policy(call: Call) -> dict[str, Any]:
    """Whether members may talk to each other without a rule."""
    doc = need_group(call, call.params.require("SecurityGroupId"))
    policy = call.params.choice("InnerAccessPolicy", ("Accept", "Drop"))
    if doc["type"] == "enterprise" and policy == "Accept":
        raise invalid("InnerAccessPolicy", "An advanced security group is always isolated.")
    doc["inner_access"] = policy
    call.store.update("security_group", doc)
    call.network_changed()
    return {}


@write("ecs", "DeleteSecurityGroup", "RegionId SecurityGroupId!")
def delete_security_group(call: Call) -> dict[str, Any]:
    """Delete a group that has no members and is named by no rule of another group."""
    doc = need_group(call, call.params.require("SecurityGroupId"))
    if call.store.count("eni", {"security_group_ids": doc["id"]}) or call.store.count(
        "mount_target", {"security_group_id": doc["id"]}
    ):
        raise dependency("DependencyViolation", "There is still instance(s) in the specified security group.")
    if any(rule["group_id"] != doc["id"] for rule in call.store.find("rule", {"peer_group_id": doc["id"]})):
        raise dependency(
            "DependencyViolation", "The specified security group has been authorized in another security group."
        )
    for rule in call.store.find("rule", {"group_id": doc["id"]}):
        call.store.delete("rule", rule["id"])
    call.store.delete("security_group", doc["id"])
    call.network_changed()
    return {}


def _change_membership(call: Call, *, join: bool) -> dict[str, Any]:
    params = call.params
    group = need_group(call, params.require("SecurityGroupId"))
    instance_id, eni_id = params.text("InstanceId"), params.text("NetworkInterfaceId")
    if bool(instance_id) == bool(eni_id):
        raise invalid("InstanceId", "Give exactly one of InstanceId and NetworkInterfaceId.")
    if instance_id:
        instance = call.store.need("instance", instance_id, not_found("InvalidInstanceId.NotFound", "InstanceId"))
        eni_id = instance["eni_id"]
    eni = call.store.need("eni", eni_id, not_found("InvalidEniId.NotFound", "NetworkInterfaceId"))
    groups = list(eni["security_group_ids"])
    if join:
        if group["id"] in groups:
            raise ApiError(403, "InvalidInstanceId.AlreadyExists", "The instance is already in the security group.")
        groups = need_groups(call, [*groups, group["id"]], eni["vpc_id"])
    else:
        if group["id"] not in groups:
            raise ApiError(
                403, "InvalidSecurityGroupAssociation.NotFound", "The instance is not in the security group."
            )
        if len(groups) == 1:
            raise ApiError(403, "InstanceLastSecurityGroup", "The instance must be in at least one security group.")
        groups.remove(group["id"])
    set_groups(call, eni, groups)
    return {}


def set_groups(call: Call, eni: Doc, groups: list[str]) -> None:
    """Give an interface (and the instance whose primary one it is) its security groups."""
    eni["security_group_ids"] = groups
    call.store.update("eni", eni)
    if eni["type"] == "Primary" and (instance := call.store.get("instance", eni["instance_id"])):
        instance["security_group_ids"] = groups
        call.store.update("instance", instance)
    call.network_changed()


@write("ecs", "JoinSecurityGroup", "RegionId SecurityGroupId! InstanceId NetworkInterfaceId")
def join_security_group(call: Call) -> dict[str, Any]:
    """Add an instance or interface to a group."""
    return _change_membership(call, join=True)


@write("ecs", "LeaveSecurityGroup", "RegionId SecurityGroupId! InstanceId NetworkInterfaceId")
def leave_security_group(call: Call) -> dict[str, Any]:
    """Take an instance or interface out of a group."""
    return _change_membership(call, join=False)
