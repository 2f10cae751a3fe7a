"""RunInstances and the descriptions of instances."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from localcloud.api import access, ids
from localcloud.api.actions import addresses, instance_ops
from localcloud.api.actions.ecs_account import used_vcpus
from localcloud.api.actions.ecs_deployment_sets import need_deployment_set
from localcloud.api.actions.ecs_images_disks import find_image, new_disk
from localcloud.api.actions.ecs_interfaces import new_eni
from localcloud.api.actions.ecs_keypairs import need_key_pair
from localcloud.api.actions.ecs_launch_templates import template_parameters
from localcloud.api.actions.ecs_security_groups import need_groups
from localcloud.api.actions.vpc import need_vswitch
from localcloud.api.call import Call, tag_list
from localcloud.api.clock import iso_minutes, iso_seconds
from localcloud.api.errors import ApiError, invalid, not_found
from localcloud.api.params import Params
from localcloud.api.registry import read, write
from localcloud.api.store import Doc
from localcloud.api.store.index import ANY

_RUN = (
    "RegionId LaunchTemplateId LaunchTemplateName LaunchTemplateVersion ImageId InstanceType InstanceName Description "
    "HostName HostNames.N UniqueSuffix Amount MinAmount ClientToken DryRun ZoneId VSwitchId SecurityGroupId "
    "SecurityGroupIds.N PrivateIpAddress InternetChargeType InternetMaxBandwidthIn InternetMaxBandwidthOut IoOptimized "
    "InstanceChargeType Period PeriodUnit AutoRenew AutoRenewPeriod SpotStrategy SpotPriceLimit SpotDuration "
    "SpotInterruptionBehavior AutoReleaseTime KeyPairName RamRoleName UserData PasswordInherit DeploymentSetId "
    "DeploymentSetGroupNo DeletionProtection CreditSpecification SecurityEnhancementStrategy ResourceGroupId "
    "HttpEndpoint HttpTokens HttpPutResponseHopLimit Tenancy Affinity ImageOptions.LoginAsNonRoot "
    "NetworkOptions.EnableJumboFrame NetworkOptions.EnableNetworkEncryption CpuOptions.{Core ThreadsPerCore "
    "TopologyType} PrivatePoolOptions.{MatchCriteria Id} AdditionalInfo.EnableHighDensityMode "
    "SystemDisk.{Category Size DiskName Description PerformanceLevel AutoSnapshotPolicyId Encrypted} "
    "DataDisk.N.{Category Size DiskName Description SnapshotId DeleteWithInstance Encrypted PerformanceLevel Device} "
    "NetworkInterface.N.{InstanceType NetworkInterfaceId VSwitchId SecurityGroupId SecurityGroupIds.N PrimaryIpAddress "
    "NetworkInterfaceTrafficMode QueuePairNumber NetworkCardIndex NetworkInterfaceName Description DeleteOnRelease "
    "SourceDestCheck} Tag.N.{Key Value key value}"
)
_STEM = re.compile(r"^[^.]+")
_PATTERN = re.compile(r"^(?P<head>.*)\[(?P<start>\d*),(?P<digits>\d*)\](?P<tail>.*)$")
_MIN_RELEASE, _MAX_RELEASE = 30 * 60, 3 * 366 * 86_400


def _merged(call: Call) -> tuple[Params, Doc | None, int]:
    """The parameters of the request over those of its launch template."""
    if "LaunchTemplateId" not in call.params and "LaunchTemplateName" not in call.params:
        return call.params, None, 0
    template, number, data = template_parameters(call, call.params)
    given = {key: value for key, value in call.params.flat().items() if value != ""}
    stems = {match.group() for key in given if (match := _STEM.match(key))}
    # A member of SystemDisk or of the options can be overridden alone; a list is replaced as a whole.
    merge = {"SystemDisk", "ImageOptions", "NetworkOptions", "CpuOptions"}
    # Network parameters of the request and of the template exclude each other.
    if "NetworkInterface" in stems:
        stems |= {"VSwitchId", "SecurityGroupId", "SecurityGroupIds", "PrivateIpAddress"}
    if stems & {"SecurityGroupId", "SecurityGroupIds"}:
        stems |= {"SecurityGroupId", "SecurityGroupIds"}
    base = {
        key: value
        for key, value in data.items()
        if (stem := key.partition(".")[0]) not in stems or (stem in merge and key not in given)
    }
    return Params({**base, **given}), template, number


def _names(params: Params, name: str, amount: int, unique: bool) -> list[str]:
    """`amount` names from a plain name, a `[start,digits]` pattern, or a plain one with a unique suffix."""
    if not name:
        return [""] * amount
    match = _PATTERN.match(name)
    if match:
        start, digits = int(match.group("start") or 0), int(match.group("digits") or 0)
        if start > 999_999 or digits > 6:
            raise invalid("InstanceName", "Its pattern is name[start,digits] with at most six digits.")
        return [
            f"{match.group('head')}{str(start + number).zfill(digits or 3)}{match.group('tail')}"
            for number in range(amount)
        ]
    if unique and amount > 1:
        return [f"{name}{number:03d}" for number in range(1, amount + 1)]
    return [name] * amount


def checked_user_data(params: Params) -> str:
    """UserData of a request, base64 as given."""
    text = params.text("UserData")
    if not text:
        return ""
    try:
        raw = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise ApiError(
            400, "InvalidUserData.Base64FormatInvalid", "The specified parameter UserData must be base64 encoded."
        ) from None
    if len(raw) > 32 * 1024:
        raise ApiError(400, "InvalidUserData.SizeExceeded", "The specified parameter UserData exceeds 32 KB.")
    return text


def release_time(call: Call, params: Params) -> float | None:
    """AutoReleaseTime of a request, checked; None if not given."""
    at = params.time("AutoReleaseTime")
    if at is None:
        return None
    if not _MIN_RELEASE - 60 <= at - call.now <= _MAX_RELEASE:
        raise ApiError(
            400,
            "InvalidAutoReleaseTime.Malformed",
            "The specified parameter AutoReleaseTime must be at least 30 minutes and at most 3 years ahead.",
        )
    return at - at % 60  # the seconds do not count


#: Periods that are sold, by unit, and the days of one.
_PERIODS = {"Week": (range(1, 5), 7), "Month": ((*range(1, 10), 12, 24, 36, 48, 60), 30), "Year": (range(1, 6), 365)}


def subscription_seconds(params: Params) -> int:
    """How long the subscription of a request lasts."""
    unit = params.choice("PeriodUnit", ("Week", "Month", "Year"), "Month")
    sold, days = _PERIODS[unit]
    period = params.number("Period", 1)
    if period not in sold:
        raise ApiError(400, "InvalidPeriod", "The specified period is not valid.")
    return period * days * 86_400


def _charge(call: Call, params: Params, instance_type: str) -> dict[str, Any]:
    """How instances are paid for."""
    charge_type = params.choice("InstanceChargeType", ("PostPaid", "PrePaid"), "PostPaid")
    strategy = params.choice("SpotStrategy", ("NoSpot", "SpotWithPriceLimit", "SpotAsPriceGo"), "NoSpot")
    knobs, offers = call.cloud.knobs, call.cloud.offers
    limit = params.real("SpotPriceLimit")
    kind = "prepaid" if charge_type == "PrePaid" else "payg" if strategy == "NoSpot" else "spot"
    if kind == "prepaid" and strategy != "NoSpot":
        raise ApiError(403, "InvalidSpotStrategy", "SpotStrategy is for pay-as-you-go instances only.")
    price = offers.price_hour(instance_type, call.region, knobs.spot_price_ratio, "spot" if kind == "spot" else "payg")
    if strategy == "SpotWithPriceLimit":
        if "SpotPriceLimit" not in params:
            raise ApiError(400, "MissingParameter.SpotPriceLimit", "The parameter SpotPriceLimit is mandatory.")
        if limit < float(price):
            raise ApiError(
                403,
                "InvalidSpotPriceLimit.LowerThanPublicPrice",
                "The specified parameter SpotPriceLimit can't be lower than the current public price.",
            )
    duration = params.number("SpotDuration", 1, 0, 6)
    at = release_time(call, params)
    if at is not None and kind == "prepaid":
        raise ApiError(403, "InvalidParameter.AutoReleaseTime", "Subscription instances have no release time.")
    return {
        "charge": kind,
        "charge_type": charge_type,
        "spot_strategy": strategy,
        "spot_price_limit": limit,
        "spot_duration": duration,
        "spot_behavior": params.choice("SpotInterruptionBehavior", ("Terminate", "Stop"), "Terminate"),
        "price_hour": str(price),
        "auto_release": at,
        "expires": call.now + subscription_seconds(params) if kind == "prepaid" else None,
        "auto_renew": params.flag("AutoRenew"),
        "auto_renew_period": params.number("AutoRenewPeriod", 1, 1, 60),
        "period_unit": params.choice("PeriodUnit", ("Week", "Month", "Year"), "Month"),
    }


def _network(call: Call, params: Params, amount: int) -> tuple[Doc, list[str], Params, list[Params], str]:
    """vSwitch, security groups, the element that describes the primary interface, secondary ones, wished address."""
    interfaces = params.structs("NetworkInterface")
    primary = [item for item in interfaces if item.text("InstanceType").lower() == "primary"]
    secondary = [item for item in interfaces if item.text("InstanceType").lower() != "primary"]
    if len(primary) > 1:
        raise invalid("NetworkInterface", "Only one interface can be the primary one.")
    if primary:
        first = primary[0]
        if any(name in params for name in ("VSwitchId", "SecurityGroupId", "PrivateIpAddress")) or params.texts(
            "SecurityGroupIds"
        ):
            raise ApiError(
                400,
                "InvalidParameter.Conflict",
                "With a primary NetworkInterface, vSwitch, security groups and address must be given inside of it.",
            )
        if "NetworkInterfaceId" in first:
            raise ApiError(
                400, "UnsupportedOperation", "This cloud cannot use an existing interface as the primary one."
            )
        source, asked = first, first.text("PrimaryIpAddress")
    else:
        source, first, asked = params, Params({}), params.text("PrivateIpAddress")
    vswitch = need_vswitch(call, source.require("VSwitchId"))
    groups = source.texts("SecurityGroupIds")
    if "SecurityGroupId" in source:
        if groups:
            raise ApiError(400, "InvalidParameter.Conflict", "Give SecurityGroupId or SecurityGroupIds, not both.")
        groups = [source.text("SecurityGroupId")]
    if not groups:
        raise ApiError(400, "MissingParameter.SecurityGroupId", "The parameter SecurityGroupId is mandatory.")
    groups = need_groups(call, groups, vswitch["vpc_id"])
    if asked and amount > 1:
        raise invalid("PrivateIpAddress", "It can be given for one instance only.")
    if len(secondary) > 4:
        raise invalid("NetworkInterface", "At most four secondary interfaces can be given.")
    return vswitch, groups, first, secondary, asked


def _check_erdma(call: Call, element: Params, instance_type: str) -> None:
    mode = element.choice("NetworkInterfaceTrafficMode", ("Standard", "HighPerformance"), "Standard")
    if mode == "HighPerformance" and not call.cloud.offers.instance_type(instance_type).erdma.usable:
        raise ApiError(
            403,
            "InvalidNetworkInterfaceTrafficMode.NotSupported",
            f"The instance type {instance_type} has no elastic RDMA interface.",
        )


def _role(call: Call, name: str) -> str:
    if not name:
        return ""
    role = call.store.get("role", name)
    if role is None:
        raise not_found("InvalidRamRole.NotFound", "RamRoleName")
    try:
        access.check(
            call.store,
            call.caller,
            "ram:PassRole",
            resource=f"acs:ram:*:{call.cloud.account_id}:role/{name}",
            context={"acs:service": "ecs.aliyuncs.com"},
        )
    except ApiError as error:
        raise ApiError(
            403,
            "InvalidUser.PassRoleForbidden",
            "The RAM user does not have the privilege to pass a role.",
            error.extra,
        ) from None
    return name


def _capacity(call: Call, zone: str, type_name: str, kind: str, vcpus: int, amount: int, minimum: int) -> int:
    """How many instances can be had of those asked for.

    Raises:
        ApiError: fewer than `minimum`: `OperationDenied.NoStock`, or `QuotaExceed.ElasticQuota` if quota is what lacks.
    """
    knobs, store = call.cloud.knobs, call.store
    room = amount
    quota_room = knobs.quotas.instances - store.count("instance", {"region": call.region})
    limit = knobs.quotas.spot_vcpus if kind == "spot" else knobs.quotas.vcpus
    if limit < _UNLIMITED_VCPUS:
        quota_room = min(quota_room, (limit - used_vcpus(call, spot=kind == "spot")) // vcpus)
    if quota_room < minimum:
        raise ApiError(
            403,
            "QuotaExceed.ElasticQuota",
            "The number of instances or vCPUs exceeds the quota of the account; "
            f"asked for {amount} x {vcpus} vCPUs, room for {max(quota_room, 0)} instances.",
        )
    room = min(room, quota_room)
    charge = "spot" if kind == "spot" else "payg"
    capacity = knobs.stock_of(zone, type_name, charge)
    if capacity is not None:
        stock = capacity - store.count("instance", {"stock_key": f"{zone}|{type_name}|{charge}"})
        if stock < minimum:
            raise ApiError(
                403,
                "OperationDenied.NoStock",
                "The requested resource is sold out in the specified zone; try other types of resources "
                "or other regions and zones.",
            )
        room = min(room, stock)
    return room


#: Above this many vCPUs nobody has to add up what is in use.
_UNLIMITED_VCPUS = 10_000_000


def _check_placement(call: Call, set_id: str, type_name: str) -> None:
    if not set_id:
        return
    placement = need_deployment_set(call, set_id)
    kind = call.cloud.offers.instance_type(type_name)
    if placement["strategy"] == "LowLatency" and kind.low_latency_placement.value == "no":
        raise ApiError(403, "InvalidInstanceType.NotSupportDeploymentSet", "The type cannot be in this deployment set.")


@write("ecs", "RunInstances", _RUN)
def run_instances(call: Call) -> dict[str, Any]:
    """Create and start 1 to 100 instances."""
    params, template, version = _merged(call)
    amount = params.number("Amount", 1, 1, 100)
    minimum = params.number("MinAmount", amount, 1, 100)
    if minimum > amount:
        raise invalid("MinAmount", "It cannot be greater than Amount.")
    call.cloud.rates.launch(call.now, amount, call.cloud.knobs.instances_per_minute)
    type_name = params.require("InstanceType")
    kind = call.cloud.offers.instance_type(type_name)
    image = find_image(call, params.require("ImageId"), kind.architecture)
    vswitch, groups, first, secondary, asked = _network(call, params, amount)
    zone = vswitch["zone"]
    if params.text("ZoneId", zone) != zone:
        raise ApiError(400, "InvalidParameter.Mismatch", "The specified vSwitch is not in the specified zone.")
    for element in (first, *secondary):
        _check_erdma(call, element, type_name)
    charge = _charge(call, params, type_name)
    key_name = params.text("KeyPairName")
    if key_name:
        need_key_pair(call, key_name)
    _check_placement(call, params.text("DeploymentSetId"), type_name)
    role = _role(call, params.text("RamRoleName"))
    user_data = checked_user_data(params)
    tags = params.tags()
    host_names = params.texts("HostNames")
    if host_names and len(host_names) != amount:
        raise invalid("HostNames", "Their number must be Amount.")
    amount = _capacity(call, zone, type_name, charge["charge"], kind.vcpus, amount, minimum)
    unique = params.flag("UniqueSuffix")
    names = _names(params, params.text("InstanceName"), amount, unique)
    hosts = host_names or _names(params, params.text("HostName"), amount, unique)
    ips = addresses.take(call.store, vswitch, amount, asked)
    stock_charge = "spot" if charge["charge"] == "spot" else "payg"
    shared: Doc = {
        "region": call.region,
        "zone": zone,
        "vpc_id": vswitch["vpc_id"],
        "vswitch_id": vswitch["id"],
        "security_group_ids": groups,
        "description": params.text("Description"),
        "status": "Pending",
        "stopped_mode": "",
        "instance_type": type_name,
        "family": kind.family,
        "vcpus": kind.vcpus,
        "memory_mib": int(kind.memory_gib * 1024),
        "cores": kind.physical_cores,
        "threads_per_core": kind.threads_per_core,
        "image_id": image["id"],
        "os_name": image["os_name"],
        "key_pair": key_name,
        "ram_role": role,
        "user_data": call.store.keep_text(user_data),  # 32 KiB, often the same for a whole pool
        "http_endpoint": params.choice("HttpEndpoint", ("enabled", "disabled"), "enabled"),
        "http_tokens": params.choice("HttpTokens", ("optional", "required"), "optional"),
        "hop_limit": params.number("HttpPutResponseHopLimit", 1, 1, 64),
        "deployment_set_id": params.text("DeploymentSetId"),
        "deletion_protection": params.flag("DeletionProtection"),
        "credit": params.text("CreditSpecification"),
        "jumbo": params.flag("NetworkOptions.EnableJumboFrame", True),
        "login_as_non_root": params.flag("ImageOptions.LoginAsNonRoot"),
        "internet_charge": params.choice("InternetChargeType", ("PayByTraffic", "PayByBandwidth"), "PayByTraffic"),
        "bandwidth_out": params.number("InternetMaxBandwidthOut", 0, 0, 100),
        "bandwidth_in": params.number("InternetMaxBandwidthIn", 0, 0, 200),
        "resource_group": params.text("ResourceGroupId", "rg-acfm-default"),
        "created": call.now,
        "started": call.now,
        "stock_key": f"{zone}|{type_name}|{stock_charge}",
        "template_id": template["id"] if template else "",
        "template_version": version,
        "reclaim_at": None,
        "tags": tags,
        **charge,
    }
    if shared["bandwidth_out"]:
        raise ApiError(400, "UnsupportedOperation", "This cloud gives public addresses as elastic IP addresses only.")
    docs: list[Doc] = []
    enis: list[Doc] = []
    disks: list[Doc] = []
    for number in range(amount):
        instance_id = ids.resource_id("i")
        eni = new_eni(call, vswitch, groups, ips[number], first, instance_id=instance_id, primary=True, tags=tags)
        disk = new_disk(call, params.struct("SystemDisk"), zone, instance_id=instance_id, image=image, tags=tags)
        if charge["charge"] == "prepaid":
            disk.update(charge_type="PrePaid", expires=charge["expires"])
        extra = [
            new_disk(call, item, zone, instance_id=instance_id, image=None, tags=tags, letter=chr(ord("b") + place))
            for place, item in enumerate(params.structs("DataDisk"))
        ]
        docs.append(
            {
                **shared,
                "id": instance_id,
                "name": names[number] or instance_id.replace("i-", "iZ") + "Z",
                "hostname": hosts[number] or instance_id.replace("i-", "iZ") + "Z",
                "private_ip": ips[number],
                "mac": eni["mac"],
                "eni_id": eni["id"],
                "system_disk_id": disk["id"],
                "serial": ids.request_id().lower(),
            }
        )
        enis.append(eni)
        disks += [disk, *extra]
    call.store.insert("instance", *docs)
    call.store.insert("eni", *enis)
    call.store.insert("disk", *disks)
    for doc in docs:
        for element in secondary:
            _secondary(call, doc, element, tags)
    call.network_changed()
    if at := charge["auto_release"]:
        call.store.set_timers("instance", [(doc["id"], "auto_release", at) for doc in docs])
    instance_ops.boot(call, *docs)
    return {
        "InstanceIdSets": {"InstanceIdSet": [doc["id"] for doc in docs]},
        "TradePrice": float(charge["price_hour"]) * amount,
    }


def _secondary(call: Call, instance: Doc, element: Params, tags: dict[str, str]) -> None:
    """A further interface of an instance, new or existing."""
    if existing := element.text("NetworkInterfaceId"):
        eni = call.store.need("eni", existing, not_found("InvalidEniId.NotFound", "NetworkInterfaceId"))
        if eni["status"] != "Available":
            raise ApiError(400, "InvalidOperation.InvalidEniState", "The specified interface is not available.")
        eni.update(instance_id=instance["id"], status="InUse", delete_on_release=False)
        call.store.update("eni", eni)
        return
    vswitch = need_vswitch(call, element.text("VSwitchId", instance["vswitch_id"]))
    if vswitch["zone"] != instance["zone"] or vswitch["vpc_id"] != instance["vpc_id"]:
        raise invalid("NetworkInterface", "A secondary interface must be in the zone and VPC of the instance.")
    groups = element.texts("SecurityGroupIds") or [element.text("SecurityGroupId")]
    groups = need_groups(call, [item for item in groups if item] or instance["security_group_ids"], vswitch["vpc_id"])
    address = addresses.take(call.store, vswitch, 1, element.text("PrimaryIpAddress"))[0]
    call.store.insert(
        "eni",
        new_eni(call, vswitch, groups, address, element, instance_id=instance["id"], primary=False, tags=tags),
    )


def _view(call: Call, doc: Doc, enis: list[Doc], eip: Doc | None) -> dict[str, Any]:
    stopped = doc["status"] == "Stopped"
    return {
        "InstanceId": doc["id"],
        "InstanceName": doc["name"],
        "HostName": doc["hostname"],
        "Description": doc["description"],
        "RegionId": doc["region"],
        "ZoneId": doc["zone"],
        "ClusterId": "",
        "Status": doc["status"],
        "StoppedMode": (doc["stopped_mode"] or "KeepCharging") if stopped else "Not-applicable",
        "InstanceType": doc["instance_type"],
        "InstanceTypeFamily": doc["family"],
        "Cpu": doc["vcpus"],
        "CPU": doc["vcpus"],
        "Memory": doc["memory_mib"],
        "CpuOptions": {
            "CoreCount": doc["cores"],
            "ThreadsPerCore": doc["threads_per_core"],
            "Numa": "",
            "TopologyType": "",
        },
        "GPUAmount": 0,
        "GPUSpec": "",
        "ImageId": doc["image_id"],
        "OSName": doc["os_name"],
        "OSNameEn": doc["os_name"],
        "OSType": "linux",
        "CreationTime": iso_minutes(doc["created"]),
        "StartTime": iso_minutes(doc["started"]),
        "AutoReleaseTime": iso_minutes(doc["auto_release"]) if doc["auto_release"] else "",
        "ExpiredTime": iso_minutes(doc["expires"]) if doc["expires"] else "2099-12-31T15:59Z",
        "InstanceChargeType": doc["charge_type"],
        "SaleCycle": "",
        "SpotStrategy": doc["spot_strategy"],
        "SpotPriceLimit": doc["spot_price_limit"],
        "SpotDuration": doc["spot_duration"] if doc["charge"] == "spot" else 0,
        "SpotInterruptionBehavior": doc["spot_behavior"] if doc["charge"] == "spot" else "",
        "InternetChargeType": doc["internet_charge"],
        "InternetMaxBandwidthIn": doc["bandwidth_in"],
        "InternetMaxBandwidthOut": doc["bandwidth_out"],
        "InstanceNetworkType": "vpc",
        "VlanId": "",
        "IoOptimized": True,
        "DeviceAvailable": True,
        "DeletionProtection": doc["deletion_protection"],
        "KeyPairName": doc["key_pair"],
        "SerialNumber": doc["serial"],
        "CreditSpecification": doc["credit"],
        "ResourceGroupId": doc["resource_group"],
        "DeploymentSetId": doc["deployment_set_id"],
        "HpcClusterId": "",
        "LocalStorageCapacity": 0,
        "Recyclable": bool(doc.get("reclaim_at")),
        "SecurityGroupIds": {"SecurityGroupId": doc["security_group_ids"]},
        "PublicIpAddress": {"IpAddress": []},
        "InnerIpAddress": {"IpAddress": []},
        "RdmaIpAddress": {"IpAddress": []},
        "VpcAttributes": {
            "VpcId": doc["vpc_id"],
            "VSwitchId": doc["vswitch_id"],
            "PrivateIpAddress": {"IpAddress": [doc["private_ip"]]},
            "NatIpAddress": "",
        },
        "EipAddress": {
            "AllocationId": eip["id"] if eip else "",
            "IpAddress": eip["address"] if eip else "",
            "Bandwidth": eip["bandwidth"] if eip else 0,
            "InternetChargeType": eip["internet_charge"] if eip else "",
            "IsSupportUnassociate": bool(eip),
        },
        "NetworkInterfaces": {
            "NetworkInterface": [
                {
                    "NetworkInterfaceId": eni["id"],
                    "Type": eni["type"],
                    "MacAddress": eni["mac"],
                    "PrimaryIpAddress": eni["private_ip"],
                    "PrivateIpSets": {"PrivateIpSet": [{"PrivateIpAddress": eni["private_ip"], "Primary": True}]},
                    "Ipv6Sets": {"Ipv6Set": []},
                }
                for eni in enis
            ]
        },
        "MetadataOptions": {
            "HttpEndpoint": doc["http_endpoint"],
            "HttpTokens": doc["http_tokens"],
            "HttpPutResponseHopLimit": doc["hop_limit"],
        },
        "ImageOptions": {"LoginAsNonRoot": doc["login_as_non_root"]},
        "OperationLocks": instance_ops.locks(doc),
        "EcsCapacityReservationAttr": {"CapacityReservationId": "", "CapacityReservationPreference": ""},
        "DedicatedHostAttribute": {"DedicatedHostId": "", "DedicatedHostName": "", "DedicatedHostClusterId": ""},
        "DedicatedInstanceAttribute": {"Tenancy": "", "Affinity": ""},
        "HibernationOptions": {"Configured": False},
        "AdditionalInfo": {"EnableHighDensityMode": False},
        "Tags": tag_list(doc),
    }


def _known(params: Params, name: str, allowed: tuple[str, ...], error: ApiError) -> str:
    """One of `allowed` or nothing; each filter has its own error for other values."""
    value = params.text(name)
    if value and value not in allowed:
        raise error
    return value


def _further_filters(call: Call) -> Callable[[Doc], bool] | None:
    """Filters by members that are not indexed as one question to a document; None if none is given."""
    params = call.params
    tests: list[Callable[[Doc], bool]] = []
    for name, key in (
        ("InstanceTypeFamily", "family"),
        ("ResourceGroupId", "resource_group"),
        ("HttpEndpoint", "http_endpoint"),
        ("HttpTokens", "http_tokens"),
    ):
        if wanted := params.text(name):
            tests.append(lambda doc, key=key, wanted=wanted: doc[key] == wanted)  # type: ignore[misc]
    charge = _known(
        params, "InstanceChargeType", ("PostPaid", "PrePaid"),
        ApiError(404, "InvalidInstanceChargeType.NotFound", "The specified InstanceChargeType is not found."),
    )  # fmt: skip
    if charge:
        tests.append(lambda doc: doc["charge_type"] == charge)
    internet = _known(
        params, "InternetChargeType", ("PayByTraffic", "PayByBandwidth"),
        ApiError(400, "InvalidInternetChargeType.ValueNotSupported", "The specified InternetChargeType is not valid."),
    )  # fmt: skip
    if internet:
        tests.append(lambda doc: doc["internet_charge"] == internet)
    lock = _known(
        params, "LockReason", ("financial", "security", "Recycling", "dedicatedhostfinancial", "refunded"),
        ApiError(404, "InvalidLockReason.NotFound", "The specified LockReason is not found."),
    )  # fmt: skip
    if lock:
        tests.append(lambda doc: lock == "Recycling" and bool(doc.get("reclaim_at")))
    network = _known(
        params, "InstanceNetworkType", ("vpc", "classic"),
        ApiError(404, "InvalidNetworkType.NotFound", "The specified InstanceNetworkType is not found."),
    )  # fmt: skip
    # What no instance of this cloud has: classic networks, RDMA addresses, HPC clusters, no I/O optimization.
    absent = ("InnerIpAddresses", "PublicIpAddresses", "RdmaIpAddresses", "HpcClusterId")
    if network == "classic" or any(name in params for name in absent) or not params.flag("IoOptimized", True):
        tests.append(lambda _: False)
    if not params.flag("DeviceAvailable", True):
        tests.append(lambda _: False)
    if addresses_ := params.json_texts("EipAddresses"):
        holders = {
            eip["instance_id"] for eip in call.store.find("eip", {"address": addresses_[:100]}) if eip["instance_id"]
        }
        tests.append(lambda doc: doc["id"] in holders)
    pattern = params.text("InstanceName")
    if "*" in pattern:
        expression = re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)
        tests.append(lambda doc: expression.fullmatch(doc["name"]) is not None)
    if not tests:
        return None
    return lambda doc: all(test(doc) for test in tests)


def _filters(call: Call) -> dict[str, Any]:
    params = call.params
    return {
        "status": _known(
            params,
            "Status",
            ("Pending", "Running", "Starting", "Stopping", "Stopped"),
            ApiError(404, "InvalidStatus.NotFound", "The specified Status is not found."),
        ),
        "vswitch_id": params.text("VSwitchId"),
        "vpc_id": params.text("VpcId"),
        "zone": params.text("ZoneId"),
        "security_group_ids": params.text("SecurityGroupId"),
        "instance_type": params.text("InstanceType"),
        "image_id": params.text("ImageId"),
        "key_pair": params.text("KeyPairName"),
        "name": params.text("InstanceName") if "*" not in params.text("InstanceName") else "",
        "private_ip": params.json_texts("PrivateIpAddresses"),
        "region": call.region,
    }


@read(
    "ecs",
    "DescribeInstances",
    "RegionId VpcId VSwitchId ZoneId InstanceNetworkType SecurityGroupId InstanceIds PageNumber PageSize "
    "InnerIpAddresses PrivateIpAddresses PublicIpAddresses EipAddresses InstanceChargeType InternetChargeType "
    "InstanceName ImageId "
    "Status LockReason InstanceTypeFamily InstanceType DeviceAvailable IoOptimized NeedSaleCycle ResourceGroupId "
    "HpcClusterId RdmaIpAddresses DryRun HttpEndpoint HttpTokens HttpPutResponseHopLimit MaxResults NextToken "
    "KeyPairName AdditionalAttributes.N Tag.N.{Key Value key value}",
)
def describe_instances(call: Call) -> dict[str, Any]:
    """Instances by id, network, state, type, name and tags; pages by number or by token."""
    params = call.params
    if params.flag("DryRun"):
        raise ApiError(400, "DryRunOperation", "Request validation has been passed with DryRun flag set.")
    wanted = params.json_texts("InstanceIds") if "InstanceIds" in params else None
    if wanted is not None and len(wanted) > 100:
        raise invalid("InstanceIds", "At most 100 ids can be given.")
    filters = _filters(call)
    tags = params.tags()
    if tags:  # a tag is usually the narrowest: let it drive the search
        filters = {**{f"tag:{key}": value or ANY for key, value in tags.items()}, **filters}
    lag = call.cloud.knobs.describe_lag
    docs, page = call.listing(
        "instance", filters, ids=wanted, visible=call.now - lag if lag else None, keep=_further_filters(call)
    )
    return {"Instances": {"Instance": views(call, docs)}, **page}


def views(call: Call, docs: list[Doc]) -> list[dict[str, Any]]:
    """Instances as DescribeInstances renders them, with two look-ups for all of them."""
    if not docs:
        return []
    wanted = [doc["id"] for doc in docs]
    enis: dict[str, list[Doc]] = {}
    for eni in call.store.find_by("eni", "instance_id", wanted):
        enis.setdefault(eni["instance_id"], []).append(eni)
    eips = {eip["instance_id"]: eip for eip in call.store.find_by("eip", "instance_id", wanted)}
    return [_view(call, doc, enis.get(doc["id"], []), eips.get(doc["id"])) for doc in docs]


@read(
    "ecs",
    "DescribeInstanceStatus",
    "RegionId ZoneId ClusterId InstanceId.N PageNumber PageSize MaxResults NextToken",
)
def describe_instance_status(call: Call) -> dict[str, Any]:
    """States of instances."""
    lag = call.cloud.knobs.describe_lag
    docs, page = call.listing(
        "instance",
        {"zone": call.params.text("ZoneId"), "region": call.region},
        ids=call.params.texts("InstanceId") or None,
        max_size=50,
        visible=call.now - lag if lag else None,
    )
    return {
        "InstanceStatuses": {"InstanceStatus": [{"InstanceId": doc["id"], "Status": doc["status"]} for doc in docs]},
        **page,
    }


def need_instance(call: Call, instance_id: str) -> Doc:
    """The instance in the region of the request, or the documented error."""
    doc = call.store.get("instance", instance_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("InvalidInstanceId.NotFound", "InstanceId")
    return doc


@read("ecs", "DescribeInstanceAttribute", "RegionId InstanceId!")
def describe_instance_attribute(call: Call) -> dict[str, Any]:
    """One instance in the older form of the answer."""
    doc = need_instance(call, call.params.require("InstanceId"))
    view = views(call, [doc])[0]
    keep = (
        "InstanceId", "InstanceName", "HostName", "Description", "RegionId", "ZoneId", "ClusterId", "Status", "ImageId",
        "InstanceType", "Cpu", "Memory", "CreationTime", "ExpiredTime", "InstanceChargeType", "InternetChargeType",
        "InternetMaxBandwidthIn", "InternetMaxBandwidthOut", "InstanceNetworkType", "VlanId", "SerialNumber",
        "IoOptimized", "StoppedMode", "CreditSpecification", "SecurityGroupIds", "PublicIpAddress", "InnerIpAddress",
        "VpcAttributes", "EipAddress", "OperationLocks", "DedicatedHostAttribute",
    )  # fmt: skip
    result = {key: view[key] for key in keep}
    result["EipAddress"] = {k: v for k, v in view["EipAddress"].items() if k != "IsSupportUnassociate"}
    result["DedicatedHostAttribute"] = {"DedicatedHostId": "", "DedicatedHostName": ""}
    result["IoOptimized"] = "optimized"
    result["EnableJumboFrame"] = doc["jumbo"]
    return result


@read("ecs", "DescribeUserData", "RegionId InstanceId!")
def describe_user_data(call: Call) -> dict[str, Any]:
    """User data of an instance, base64."""
    doc = need_instance(call, call.params.require("InstanceId"))
    return {"RegionId": doc["region"], "InstanceId": doc["id"], "UserData": call.store.text(doc["user_data"])}


@read("ecs", "GetInstanceConsoleOutput", "RegionId InstanceId! RemoveSymbols")
def console_output(call: Call) -> dict[str, Any]:
    """What the instance wrote to its console, base64."""
    doc = need_instance(call, call.params.require("InstanceId"))
    text = call.cloud.driver.backend.console_output(doc["id"])
    return {
        "InstanceId": doc["id"],
        "ConsoleOutput": base64.b64encode(text.encode()).decode(),
        "LastUpdateTime": iso_seconds(call.now),
    }


@read("ecs", "DescribeInstanceMaintenanceAttributes", "RegionId InstanceId.N PageNumber PageSize")
def describe_maintenance(call: Call) -> dict[str, Any]:
    """Maintenance settings: this cloud has the defaults."""
    views_ = [
        {
            "InstanceId": doc["id"],
            "ActionOnMaintenance": {
                "Value": "AutoRecover",
                "DefaultValue": "AutoRecover",
                "SupportedValues": {"SupportedValue": ["Stop", "AutoRecover"]},
            },
            "MaintenanceWindows": {"MaintenanceWindow": []},
            "NotifyOnMaintenance": False,
        }
        for doc in (need_instance(call, item) for item in call.params.texts("InstanceId"))
    ]
    return {"MaintenanceAttributes": {"MaintenanceAttribute": views_}, "TotalCount": len(views_)}


@read("ecs", "DescribeInstanceAttachmentAttributes", "RegionId InstanceIds! PageNumber PageSize")
def describe_attachment_attributes(call: Call) -> dict[str, Any]:
    """Private pools of instances: this cloud has none."""
    views_ = [
        {
            "InstanceId": need_instance(call, item)["id"],
            "PrivatePoolOptionsMatchCriteria": "Open",
            "PrivatePoolOptionsId": "",
        }
        for item in call.params.json_texts("InstanceIds")
    ]
    return {"Instances": {"Instance": views_}, "TotalCount": len(views_), "PageNumber": 1, "PageSize": 10}


# -- RAM roles of instances --------------------------------------------------------------------------------------


@read("ecs", "DescribeInstanceRamRole", "RegionId InstanceIds RamRoleName PageNumber PageSize")
def describe_instance_ram_role(call: Call) -> dict[str, Any]:
    """Which role instances have."""
    name = call.params.text("RamRoleName")
    if call.params.json_texts("InstanceIds"):
        docs = [need_instance(call, item) for item in call.params.json_texts("InstanceIds")]
    elif name:
        docs = call.store.find("instance", {"ram_role": name, "region": call.region})
    else:
        raise ApiError(400, "MissingParameter.InstanceIds", "InstanceIds or RamRoleName is mandatory.")
    chosen = [doc for doc in docs if not name or doc["ram_role"] == name]
    return {
        "RegionId": call.region,
        "TotalCount": len(chosen),
        "InstanceRamRoleSets": {
            "InstanceRamRoleSet": [{"InstanceId": doc["id"], "RamRoleName": doc["ram_role"]} for doc in chosen]
        },
    }


def _role_results(name: str, docs: list[Doc], kind: str) -> dict[str, Any]:
    return {
        "RamRoleName": name,
        "TotalCount": len(docs),
        "FailCount": 0,
        f"{kind}InstanceRamRoleResults": {
            f"{kind}InstanceRamRoleResult": [
                {"InstanceId": doc["id"], "Success": True, "Code": "200", "Message": "success"} for doc in docs
            ]
        },
    }


@write("ecs", "AttachInstanceRamRole", "RegionId RamRoleName! InstanceIds! Policy")
def attach_ram_role(call: Call) -> dict[str, Any]:
    """Bind a role to instances that have none."""
    name = _role(call, call.params.require("RamRoleName"))
    docs = [need_instance(call, item) for item in call.params.json_texts("InstanceIds")]
    for doc in docs:
        if doc["ram_role"] and doc["ram_role"] != name:
            raise ApiError(403, "InvalidRamRole.Attached", "The instance already has a RAM role.")
        doc["ram_role"] = name
        call.store.update("instance", doc)
    return _role_results(name, docs, "Attach")


@write("ecs", "DetachInstanceRamRole", "RegionId InstanceIds! RamRoleName")
def detach_ram_role(call: Call) -> dict[str, Any]:
    """Unbind the role of instances."""
    docs = [need_instance(call, item) for item in call.params.json_texts("InstanceIds")]
    for doc in docs:
        doc["ram_role"] = ""
        call.store.update("instance", doc)
    return _role_results(call.params.text("RamRoleName"), docs, "Detach")
