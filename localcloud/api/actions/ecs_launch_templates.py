"""Launch templates and their versions."""

from __future__ import annotations

from typing import Any

from localcloud.api import ids
from localcloud.api.call import Call, tag_list
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, invalid, not_found, quota
from localcloud.api.params import Params
from localcloud.api.registry import read, write
from localcloud.api.store import Doc

#: What a template may say about instances; RunInstances takes the same names.
_DATA = (
    "ImageId ImageOwnerAlias InstanceType InstanceName Description HostName InstanceChargeType Period PeriodUnit "
    "AutoRenew AutoRenewPeriod KeyPairName RamRoleName UserData SecurityGroupId SecurityGroupIds.N VSwitchId VpcId "
    "ZoneId PrivateIpAddress NetworkType InternetChargeType InternetMaxBandwidthIn InternetMaxBandwidthOut "
    "IoOptimized SpotStrategy SpotPriceLimit SpotDuration SpotInterruptionBehavior AutoReleaseTime DeploymentSetId "
    "ResourceGroupId SecurityEnhancementStrategy EnableVmOsConfig PasswordInherit DeletionProtection "
    "CreditSpecification HttpEndpoint HttpTokens HttpPutResponseHopLimit ImageOptions.LoginAsNonRoot "
    "SystemDisk.{Category Size DiskName Description Iops PerformanceLevel DeleteWithInstance Encrypted} "
    "DataDisk.N.{Category Size DiskName Description SnapshotId DeleteWithInstance Encrypted PerformanceLevel Device} "
    "NetworkInterface.N.{NetworkInterfaceName Description PrimaryIpAddress SecurityGroupId SecurityGroupIds.N "
    "VSwitchId InstanceType NetworkInterfaceTrafficMode DeleteOnRelease} Tag.N.{Key Value}"
)
_CONTROL = (
    "RegionId LaunchTemplateId LaunchTemplateName VersionDescription TemplateResourceGroupId ClientToken "
    "TemplateTag.N.{Key Value}"
)
_NOT_DATA = {"RegionId", "LaunchTemplateId", "LaunchTemplateName", "VersionDescription", "TemplateResourceGroupId"}


def _data(call: Call) -> dict[str, str]:
    keep = {"ClientToken", "Action", "Version", *_NOT_DATA}
    return {
        key: value
        for key, value in call.params.flat().items()
        if key not in keep and not key.startswith("TemplateTag.") and _is_data(key)
    }


def _is_data(key: str) -> bool:
    stem = key.partition(".")[0]
    return stem in _STEMS


_STEMS = {name.partition(".")[0].partition("{")[0] for name in _DATA.replace("}", "").replace("{", " ").split()}


def need_template(call: Call, params: Params, missing_code: str = "InvalidLaunchTemplate.NotFound") -> Doc:
    """The template that `LaunchTemplateId` or `LaunchTemplateName` names."""
    template_id, name = params.text("LaunchTemplateId"), params.text("LaunchTemplateName")
    if template_id:
        doc = call.store.get("launch_template", template_id)
        if doc is not None and doc["region"] == call.region:
            return doc
    elif name:
        found = call.store.find("launch_template", {"name": name, "region": call.region}, limit=1)
        if found:
            return found[0]
    else:
        raise ApiError(400, "MissingParameter.LaunchTemplateId", "LaunchTemplateId or LaunchTemplateName is mandatory.")
    raise not_found(missing_code, "launch template")


def need_version(call: Call, template: Doc, number: int) -> Doc:
    """A version of a template."""
    return call.store.need(
        "launch_template_version",
        f"{template['id']}/{number}",
        not_found("InvalidLaunchTemplateVersion.NotFound", "launch template version"),
    )


def template_parameters(call: Call, params: Params) -> tuple[Doc, int, dict[str, str]]:
    """The template that a RunInstances request names, the version, and its parameters."""
    template = need_template(call, params)
    number = params.number("LaunchTemplateVersion", template["default_version"], 1)
    return template, number, dict(need_version(call, template, number)["data"])


def _add_version(call: Call, template_id: str, number: int) -> None:
    call.store.insert(
        "launch_template_version",
        {
            "id": f"{template_id}/{number}",
            "template_id": template_id,
            "number": number,
            "description": call.params.text("VersionDescription"),
            "created": call.now,
            "data": _data(call),
            "tags": {},
        },
    )


@write("ecs", "CreateLaunchTemplate", f"{_CONTROL} {_DATA}")
def create_launch_template(call: Call) -> dict[str, Any]:
    """Make a template with its first version."""
    params = call.params
    name = params.require("LaunchTemplateName")
    if call.store.count("launch_template", {"name": name, "region": call.region}):
        raise ApiError(400, "InvalidLaunchTemplateName.AlreadyExist", "The launch template name already exists.")
    if call.store.count("launch_template", {"region": call.region}) >= call.cloud.knobs.quotas.launch_templates:
        raise quota("LaunchTemplateLimitExceed", "The maximum number of launch templates is reached.")
    params.tags()  # refuse bad ones now rather than at launch
    doc = {
        "id": ids.resource_id("lt"),
        "region": call.region,
        "name": name,
        "created": call.now,
        "modified": call.now,
        "default_version": 1,
        "latest_version": 1,
        "resource_group": params.text("TemplateResourceGroupId", "rg-acfm-default"),
        "tags": params.tags("TemplateTag"),
    }
    call.store.insert("launch_template", doc)
    _add_version(call, str(doc["id"]), 1)
    return {"LaunchTemplateId": doc["id"], "LaunchTemplateVersionNumber": 1}


@write("ecs", "CreateLaunchTemplateVersion", f"{_CONTROL} {_DATA}")
def create_launch_template_version(call: Call) -> dict[str, Any]:
    """Add a version; it does not become the default by itself."""
    doc = need_template(call, call.params)
    if (
        call.store.count("launch_template_version", {"template_id": doc["id"]})
        >= call.cloud.knobs.quotas.launch_template_versions
    ):
        raise quota("LaunchTemplateVersionLimitExceed", "The maximum number of versions is reached.")
    doc["latest_version"] += 1
    doc["modified"] = call.now
    call.store.update("launch_template", doc)
    _add_version(call, doc["id"], doc["latest_version"])
    return {"LaunchTemplateId": doc["id"], "LaunchTemplateVersionNumber": doc["latest_version"]}


@write(
    "ecs", "ModifyLaunchTemplateDefaultVersion", "RegionId LaunchTemplateId LaunchTemplateName DefaultVersionNumber!"
)
def modify_default_version(call: Call) -> dict[str, Any]:
    """Choose the version that RunInstances takes when it names none."""
    doc = need_template(call, call.params)
    number = call.params.number("DefaultVersionNumber", 0, 1)
    need_version(call, doc, number)
    doc.update(default_version=number, modified=call.now)
    call.store.update("launch_template", doc)
    return {}


@read(
    "ecs",
    "DescribeLaunchTemplates",
    "RegionId LaunchTemplateId.N LaunchTemplateName.N TemplateResourceGroupId PageNumber PageSize "
    "TemplateTag.N.{Key Value}",
)
def describe_launch_templates(call: Call) -> dict[str, Any]:
    """Templates by id, name and tags."""
    params = call.params
    docs, page = call.listing(
        "launch_template",
        {"name": params.texts("LaunchTemplateName"), "region": call.region},
        ids=params.texts("LaunchTemplateId") or None,
        tags=params.tags("TemplateTag"),
    )
    views = [
        {
            "LaunchTemplateId": doc["id"],
            "LaunchTemplateName": doc["name"],
            "DefaultVersionNumber": doc["default_version"],
            "LatestVersionNumber": doc["latest_version"],
            "CreateTime": iso_seconds(doc["created"]),
            "ModifiedTime": iso_seconds(doc["modified"]),
            "CreatedBy": call.cloud.account_id,
            "ResourceGroupId": doc["resource_group"],
            "Tags": tag_list(doc),
        }
        for doc in docs
    ]
    return {"LaunchTemplateSets": {"LaunchTemplateSet": views}, **page}


_NUMBERS = {
    "Period", "AutoRenewPeriod", "InternetMaxBandwidthIn", "InternetMaxBandwidthOut", "SpotDuration",
    "HttpPutResponseHopLimit",
}  # fmt: skip
_FLAGS = {"EnableVmOsConfig", "PasswordInherit", "DeletionProtection", "AutoRenew"}
_REALS = {"SpotPriceLimit"}


def _data_view(data: dict[str, str]) -> dict[str, Any]:
    params = Params(data)
    view: dict[str, Any] = {}
    for key, value in data.items():
        if "." in key:
            continue
        if key in _NUMBERS:
            view[key] = params.number(key)
        elif key in _FLAGS:
            view[key] = params.flag(key)
        elif key in _REALS:
            view[key] = params.real(key)
        else:
            view[key] = value
    if groups := params.texts("SecurityGroupIds"):
        view["SecurityGroupIds"] = {"SecurityGroupId": groups}
    disk = params.struct("SystemDisk")
    system: dict[str, Any] = {
        key: disk.text(key) for key in ("Category", "DiskName", "Description", "PerformanceLevel") if key in disk
    }
    for key in ("Size", "Iops"):
        if key in disk:
            system[key] = disk.number(key)
    for key in ("DeleteWithInstance", "Encrypted"):
        if key in disk:
            system[key] = disk.flag(key)
    if system:
        # Older clients read the flat names, newer ones the nested object; the service sends both spellings over time.
        view["SystemDisk"] = system
        view.update({f"SystemDisk.{key}": value for key, value in system.items()})
    view["DataDisks"] = {
        "DataDisk": [
            {
                **{
                    key: item.text(key)
                    for key in (
                        "Category",
                        "DiskName",
                        "Description",
                        "SnapshotId",
                        "PerformanceLevel",
                        "Device",
                    )
                    if key in item
                },
                "Size": item.number("Size"),
                "Encrypted": item.flag("Encrypted"),
                "DeleteWithInstance": item.flag("DeleteWithInstance", True),
            }
            for item in params.structs("DataDisk")
        ]
    }
    view["NetworkInterfaces"] = {
        "NetworkInterface": [
            {
                **{
                    key: item.text(key)
                    for key in (
                        "NetworkInterfaceName", "Description", "PrimaryIpAddress", "SecurityGroupId", "VSwitchId",
                        "InstanceType", "NetworkInterfaceTrafficMode",
                    )
                    if key in item
                },
                "DeleteOnRelease": item.flag("DeleteOnRelease", True),
                "SecurityGroupIds": {"SecurityGroupId": item.texts("SecurityGroupIds")},
            }
            for item in params.structs("NetworkInterface")
        ]
    }  # fmt: skip
    view["Tags"] = {"InstanceTag": [{"Key": key, "Value": value} for key, value in params.tags().items()]}
    if "ImageOptions.LoginAsNonRoot" in params:
        view["ImageOptions"] = {"LoginAsNonRoot": params.flag("ImageOptions.LoginAsNonRoot")}
    return view


@read(
    "ecs",
    "DescribeLaunchTemplateVersions",
    "RegionId LaunchTemplateId LaunchTemplateName LaunchTemplateVersion.N MinVersion MaxVersion DefaultVersion "
    "DetailFlag PageNumber PageSize",
)
def describe_launch_template_versions(call: Call) -> dict[str, Any]:
    """Versions of a template, newest first."""
    params = call.params
    doc = need_template(call, params)
    versions = call.store.find("launch_template_version", {"template_id": doc["id"]})
    wanted = {int(text) if text.isdecimal() else 0 for text in params.texts("LaunchTemplateVersion")}
    low, high = params.number("MinVersion", 1), params.number("MaxVersion", 10**9)
    chosen = [
        item
        for item in reversed(versions)
        if (not wanted or item["number"] in wanted)
        and low <= item["number"] <= high
        and (not params.flag("DefaultVersion") or item["number"] == doc["default_version"])
    ]
    size, number = params.number("PageSize", 10, 1, 50), params.number("PageNumber", 1, 1)
    views = [
        {
            "LaunchTemplateId": doc["id"],
            "LaunchTemplateName": doc["name"],
            "VersionNumber": item["number"],
            "DefaultVersion": item["number"] == doc["default_version"],
            "VersionDescription": item["description"],
            "CreateTime": iso_seconds(item["created"]),
            "ModifiedTime": iso_seconds(item["created"]),
            "CreatedBy": call.cloud.account_id,
            "LaunchTemplateData": _data_view(item["data"]),
        }
        for item in chosen[(number - 1) * size : number * size]
    ]
    return {
        "LaunchTemplateVersionSets": {"LaunchTemplateVersionSet": views},
        "TotalCount": len(chosen),
        "PageNumber": number,
        "PageSize": size,
    }


@write("ecs", "DeleteLaunchTemplateVersion", "RegionId LaunchTemplateId LaunchTemplateName DeleteVersion.N!")
def delete_launch_template_version(call: Call) -> dict[str, Any]:
    """Delete versions other than the default one."""
    doc = need_template(call, call.params)
    for text in call.params.texts("DeleteVersion"):
        if not text.isdecimal():
            raise invalid("DeleteVersion")
        version = need_version(call, doc, int(text))
        if version["number"] == doc["default_version"]:
            raise ApiError(403, "InvalidOperation.DefaultVersion", "The default version cannot be deleted.")
        call.store.delete("launch_template_version", version["id"])
    return {}


@write("ecs", "DeleteLaunchTemplate", "RegionId LaunchTemplateId LaunchTemplateName")
def delete_launch_template(call: Call) -> dict[str, Any]:
    """Delete a template with all versions; instances made from it are not touched."""
    doc = need_template(call, call.params)
    for version in call.store.find("launch_template_version", {"template_id": doc["id"]}):
        call.store.delete("launch_template_version", version["id"])
    call.store.delete("launch_template", doc["id"])
    return {}
