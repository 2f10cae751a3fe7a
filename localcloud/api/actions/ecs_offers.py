"""What can be bought: regions, zones, instance types, stock and prices."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from hpc.catalog import InstanceType
from localcloud.api.call import Call
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, invalid
from localcloud.api.registry import read

_DISKS = ("cloud_efficiency", "cloud_ssd", "cloud_essd")


@read("ecs", "DescribeRegions", "RegionId InstanceChargeType ResourceType AcceptLanguage")
def describe_regions(call: Call) -> dict[str, Any]:
    """Regions."""
    return {
        "Regions": {
            "Region": [
                {"RegionId": region, "LocalName": name, "RegionEndpoint": "", "Status": "available"}
                for region, name in call.cloud.offers.regions()
            ]
        }
    }


@read("ecs", "DescribeZones", "RegionId Verbose InstanceChargeType SpotStrategy AcceptLanguage")
def describe_zones(call: Call) -> dict[str, Any]:
    """Zones with what can be created in them."""
    kinds = [kind.name for kind in call.cloud.offers.instance_types()]
    return {
        "Zones": {
            "Zone": [
                {
                    "ZoneId": zone,
                    "LocalName": zone,
                    "ZoneType": "AvailabilityZone",
                    "AvailableResourceCreation": {
                        "ResourceTypes": ["VSwitch", "IoOptimized", "Instance", "DedicatedHost", "Disk"]
                    },
                    "AvailableDiskCategories": {"DiskCategories": list(_DISKS)},
                    "AvailableInstanceTypes": {"InstanceTypes": kinds},
                    "AvailableVolumeCategories": {"VolumeCategories": []},
                    "AvailableDedicatedHostTypes": {"DedicatedHostType": []},
                    "DedicatedHostGenerations": {"DedicatedHostGeneration": []},
                    "AvailableResources": {
                        "ResourcesInfo": [
                            {
                                "IoOptimized": True,
                                "SystemDiskCategories": {"supportedSystemDiskCategory": list(_DISKS)},
                                "DataDiskCategories": {"supportedDataDiskCategory": list(_DISKS)},
                                "InstanceGenerations": {"supportedInstanceGeneration": ["ecs-6"]},
                                "InstanceTypeFamilies": {"supportedInstanceTypeFamily": []},
                                "InstanceTypes": {"supportedInstanceType": kinds},
                                "NetworkTypes": {"supportedNetworkCategory": ["vpc"]},
                            }
                        ]
                    },
                }
                for zone in call.cloud.offers.zones(call.region)
            ]
        }
    }


def _type_view(kind: InstanceType) -> dict[str, Any]:
    bandwidth = int((kind.network_gbps or 0) * 1_000_000)
    eri = kind.eri_quantity if kind.eri_quantity is not None else int(kind.erdma.usable)
    return {
        "InstanceTypeId": kind.name,
        "InstanceTypeFamily": kind.family,
        "InstanceFamilyLevel": "EnterpriseLevel",
        "InstanceCategory": "High Performance Compute" if ".hpc" in kind.name else "Compute-optimized",
        "CpuCoreCount": kind.vcpus,
        "CpuArchitecture": "ARM" if kind.architecture == "arm64" else "X86",
        "CpuOptions": {
            "Core": kind.physical_cores,
            "CoreCount": kind.physical_cores,
            "ThreadsPerCore": kind.threads_per_core,
            "HyperThreadingAdjustable": False,
            "SupportedTopologyTypes": {"SupportedTopologyType": []},
        },
        "MemorySize": kind.memory_gib,
        "InstanceBandwidthRx": bandwidth,
        "InstanceBandwidthTx": bandwidth,
        "InstancePpsRx": 0,
        "InstancePpsTx": 0,
        "EniQuantity": 8,
        "EniTotalQuantity": 8,
        "EniPrivateIpAddressQuantity": 20,
        "EniIpv6AddressQuantity": 20,
        "EriQuantity": eri,
        "QueuePairNumber": 0,
        "NetworkCardQuantity": 1,
        "NetworkCards": {"NetworkCardInfo": []},
        "JumboFrameSupport": kind.jumbo_frames.usable,
        "DiskQuantity": 17,
        "GPUAmount": 0,
        "GPUSpec": "",
        "GPUMemorySize": 0,
        "LocalStorageCategory": "",
        "LocalStorageAmount": 0,
        "LocalStorageCapacity": 0,
        "NvmeSupport": "required",
        "BaselineCredit": 0,
        "InitialCredit": 0,
        "CpuSpeedFrequency": 0.0,
        "CpuTurboFrequency": 0.0,
        "PhysicalProcessorModel": "",
        "PrimaryEniQueueNumber": min(kind.vcpus, 16),
        "SecondaryEniQueueNumber": min(kind.vcpus, 16),
        "TotalEniQueueQuantity": 64,
        "MaximumQueueNumberPerEni": 16,
        "SupportedBootModes": {"SupportedBootMode": ["BIOS", "UEFI"]},
    }


@read(
    "ecs",
    "DescribeInstanceTypes",
    "RegionId InstanceTypeFamily InstanceTypes.N InstanceFamilyLevel InstanceCategory CpuArchitecture "
    "MinimumEriQuantity MinimumCpuCoreCount MaximumCpuCoreCount MinimumMemorySize MaximumMemorySize MinimumGPUAmount "
    "GPUSpec NvmeSupport MaxResults NextToken",
)
def describe_instance_types(call: Call) -> dict[str, Any]:
    """Instance types with their figures, eRDMA interfaces included."""
    params = call.params
    wanted = set(params.texts("InstanceTypes"))
    family = params.text("InstanceTypeFamily")
    architecture = params.choice("CpuArchitecture", ("X86", "ARM"))
    low_cpu, high_cpu = params.number("MinimumCpuCoreCount"), params.number("MaximumCpuCoreCount", 10**6)
    low_memory, high_memory = params.real("MinimumMemorySize"), params.real("MaximumMemorySize", 1e9)
    eri = params.number("MinimumEriQuantity")
    views = [
        view
        for kind in call.cloud.offers.instance_types()
        if (not wanted or kind.name in wanted)
        and (not family or kind.family == family)
        and low_cpu <= kind.vcpus <= high_cpu
        and low_memory <= kind.memory_gib <= high_memory
        and (view := _type_view(kind))["EriQuantity"] >= eri
        and (not architecture or view["CpuArchitecture"] == architecture)
    ]
    size = params.number("MaxResults", 1600, 1, 1600)
    try:
        start = int(params.text("NextToken", "0"))
    except ValueError:
        raise invalid("NextToken") from None
    following = start + size
    return {
        "InstanceTypes": {"InstanceType": views[start:following]},
        "NextToken": str(following) if following < len(views) else "",
    }


@read("ecs", "DescribeInstanceTypeFamilies", "RegionId Generation")
def describe_families(call: Call) -> dict[str, Any]:
    """Instance families."""
    names = dict.fromkeys(kind.family for kind in call.cloud.offers.instance_types())
    return {
        "InstanceTypeFamilies": {
            "InstanceTypeFamily": [{"InstanceTypeFamilyId": name, "Generation": "ecs-6"} for name in names]
        }
    }


def _stock_left(call: Call, zone: str, name: str, charge: str) -> int | None:
    capacity = call.cloud.knobs.stock_of(zone, name, charge)
    if capacity is None:
        return None
    return max(0, capacity - call.store.count("instance", {"stock_key": f"{zone}|{name}|{charge}"}))


@read(
    "ecs",
    "DescribeAvailableResource",
    "RegionId ZoneId DestinationResource! ResourceType InstanceChargeType SpotStrategy SpotDuration IoOptimized "
    "InstanceType SystemDiskCategory DataDiskCategory NetworkCategory DedicatedHostId Cores Memory Scope ResourceId",
)
def describe_available_resource(call: Call) -> dict[str, Any]:
    """What is on sale in which zone, and whether there is stock."""
    params = call.params
    destination = params.require("DestinationResource")
    zone_id = params.text("ZoneId")
    if zone_id:
        call.cloud.offers.check_zone(call.region, zone_id)
    zones = [zone_id] if zone_id else list(call.cloud.offers.zones(call.region))
    charge = "spot" if params.text("SpotStrategy", "NoSpot") != "NoSpot" else "payg"
    wanted, cores, memory = params.text("InstanceType"), params.number("Cores"), params.real("Memory")
    kinds = [
        kind
        for kind in call.cloud.offers.instance_types()
        if (not wanted or kind.name == wanted)
        and (not cores or kind.vcpus == cores)
        and (not memory or kind.memory_gib == memory)
    ]
    result = []
    supported: list[dict[str, Any]]
    for zone in zones:
        if destination == "InstanceType":
            supported = []
            for kind in kinds:
                left = _stock_left(call, zone, kind.name, charge)
                there = left is None or left > 0
                supported.append(
                    {
                        "Value": kind.name,
                        "Status": "Available" if there else "SoldOut",
                        "StatusCategory": "WithStock" if there else "WithoutStock",
                    }
                )
        elif destination in ("SystemDisk", "DataDisk"):
            supported = [
                {
                    "Value": name,
                    "Status": "Available",
                    "StatusCategory": "WithStock",
                    "Min": 20,
                    "Max": 2048,
                    "Unit": "GiB",
                }
                for name in _DISKS
            ]
        elif destination == "Zone":
            supported = [{"Value": zone, "Status": "Available", "StatusCategory": "WithStock"}]
        elif destination == "IoOptimized":
            supported = [{"Value": "optimized", "Status": "Available", "StatusCategory": "WithStock"}]
        elif destination == "Network":
            supported = [{"Value": "vpc", "Status": "Available", "StatusCategory": "WithStock"}]
        else:
            raise invalid("DestinationResource")
        there = any(item["StatusCategory"] == "WithStock" for item in supported)
        result.append(
            {
                "RegionId": call.region,
                "ZoneId": zone,
                "Status": "Available" if there else "SoldOut",
                "StatusCategory": "WithStock" if there else "WithoutStock",
                "AvailableResources": {
                    "AvailableResource": [{"Type": destination, "SupportedResources": {"SupportedResource": supported}}]
                },
            }
        )
    return {"AvailableZones": {"AvailableZone": result}}


def _price(call: Call, name: str, charge: Literal["payg", "spot"]) -> Decimal:
    call.cloud.offers.instance_type(name)
    return call.cloud.offers.price_hour(name, call.region, call.cloud.knobs.spot_price_ratio, charge)


@read(
    "ecs",
    "DescribePrice",
    "RegionId ResourceType InstanceType ImageId Amount Period PriceUnit SpotStrategy SpotDuration ZoneId "
    "InternetChargeType InternetMaxBandwidthOut InstanceNetworkType IoOptimized Platform InstanceTypeList.N Capacity "
    "SystemDisk.{Category Size PerformanceLevel} DataDisk.N.{Category Size PerformanceLevel}",
)
def describe_price(call: Call) -> dict[str, Any]:
    """Price of instances or disks (catalog prices; nominal where the catalog knows none)."""
    params = call.params
    kind = params.choice("ResourceType", ("instance", "disk", "bandwidth"), "instance")
    amount = params.number("Amount", 1, 1, 1000)
    unit = params.choice("PriceUnit", ("Hour", "Day", "Week", "Month", "Year"), "Hour")
    period = params.number("Period", 1, 1)
    hours = {"Hour": 1, "Day": 24, "Week": 168, "Month": 720, "Year": 8640}[unit] * period
    offers = call.cloud.offers
    details: list[tuple[str, Decimal, Decimal]] = []
    if kind == "instance":
        name = params.require("InstanceType")
        full = _price(call, name, "payg")
        spot = params.choice("SpotStrategy", ("NoSpot", "SpotWithPriceLimit", "SpotAsPriceGo"), "NoSpot") != "NoSpot"
        details.append(("instanceType", full, _price(call, name, "spot") if spot else full))
    elif kind == "bandwidth":
        raise ApiError(400, "UnsupportedOperation", "This cloud has no price of bandwidth.")
    disks = [params.struct("SystemDisk"), *params.structs("DataDisk")]
    for disk in disks:
        if "Category" in disk or "Size" in disk:
            cost = offers.price_disk_hour(
                disk.text("Category", "cloud_essd"),
                disk.text("PerformanceLevel", "PL1"),
                disk.number("Size", 40, 1, 65_536),
                call.region,
            )
            details.append(("systemDisk" if disk is disks[0] else "dataDisk", cost, cost))
    original = float(sum((full for _, full, _ in details), Decimal(0)) * hours * amount)
    trade = float(sum((mine for _, _, mine in details), Decimal(0)) * hours * amount)
    return {
        "PriceInfo": {
            "Price": {
                "OriginalPrice": round(original, 5),
                "DiscountPrice": round(original - trade, 5),
                "TradePrice": round(trade, 5),
                "Currency": "CNY",
                "ReservedInstanceHourPrice": 0,
                "DetailInfos": {
                    "DetailInfo": [
                        {
                            "Resource": what,
                            "OriginalPrice": float(full * hours * amount),
                            "TradePrice": float(mine * hours * amount),
                            "DiscountPrice": float((full - mine) * hours * amount),
                            "SubRules": {"Rule": []},
                        }
                        for what, full, mine in details
                    ]
                },
            },
            "Rules": {"Rule": []},
            "RelatedPrice": {},
        }
    }


@read(
    "ecs",
    "DescribeSpotPriceHistory",
    "RegionId ZoneId InstanceType! NetworkType! IoOptimized SpotDuration OSType StartTime EndTime Offset",
)
def describe_spot_price_history(call: Call) -> dict[str, Any]:
    """Spot prices of the last hours: in this cloud they do not move."""
    params = call.params
    name = params.require("InstanceType")
    end = params.time("EndTime") or call.now
    start = params.time("StartTime") or end - 3 * 3600
    if not 0 <= end - start <= 30 * 86_400:
        raise invalid("StartTime", "The span must be at most 30 days.")
    zones = [params.text("ZoneId")] if "ZoneId" in params else list(call.cloud.offers.zones(call.region))
    full, spot = float(_price(call, name, "payg")), float(_price(call, name, "spot"))
    rows = [
        {
            "ZoneId": zone,
            "InstanceType": name,
            "NetworkType": "vpc",
            "IoOptimized": "optimized",
            "Timestamp": iso_seconds(hour * 3600),
            "SpotPrice": spot,
            "OriginPrice": full,
        }
        for zone in zones
        for hour in range(int(start // 3600), int(end // 3600) + 1)
    ]
    offset = params.number("Offset", 0, 0)
    page = rows[offset : offset + 1000]
    return {
        "Currency": "CNY",
        "NextOffset": offset + len(page),
        "SpotPrices": {"SpotPriceType": page},
    }


@read("ecs", "DescribeSpotAdvice", "RegionId ZoneId InstanceTypes.N InstanceTypeFamily Cores Memory MinCores MinMemory")
def describe_spot_advice(call: Call) -> dict[str, Any]:
    """Interruption rates of spot instances: in this cloud they are taken back on request only."""
    params = call.params
    wanted, family = set(params.texts("InstanceTypes")), params.text("InstanceTypeFamily")
    zones = [params.text("ZoneId")] if "ZoneId" in params else list(call.cloud.offers.zones(call.region))
    ratio = round(call.cloud.knobs.spot_price_ratio * 100)
    kinds = [
        kind
        for kind in call.cloud.offers.instance_types()
        if (not wanted or kind.name in wanted) and (not family or kind.family == family)
    ]
    return {
        "RegionId": call.region,
        "AvailableSpotZones": {
            "AvailableSpotZone": [
                {
                    "ZoneId": zone,
                    "AvailableSpotResources": {
                        "AvailableSpotResource": [
                            {
                                "InstanceType": kind.name,
                                "AverageSpotDiscount": ratio,
                                "InterruptRateDesc": "0-3%",
                                "InterruptionRate": 0.0,
                            }
                            for kind in kinds
                        ]
                    },
                }
                for zone in zones
            ]
        },
    }
