"""Images and disks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localcloud.api import ids
from localcloud.api.call import Call, tag_list
from localcloud.api.clock import iso_minutes, iso_seconds
from localcloud.api.errors import ApiError, not_found
from localcloud.api.params import Params
from localcloud.api.registry import read, write
from localcloud.api.store import Doc

_CATEGORIES = (
    "cloud", "cloud_efficiency", "cloud_ssd", "cloud_essd", "cloud_auto", "cloud_essd_entry",
)  # fmt: skip
_LEVELS = ("PL0", "PL1", "PL2", "PL3")


def find_image(call: Call, image_id: str, architecture: str) -> Doc:
    """The image to boot from, as a document with `id`, `os_name` and `size` in GiB.

    Raises:
        ApiError: it does not exist, is not ready, or is for another architecture.
    """
    own = call.store.get("image", image_id)
    if own is not None and own["region"] == call.region:
        if own["status"] != "Available":
            raise ApiError(403, "InvalidImage.NotAvailable", "The specified image is not available.")
        found: Doc = own
    else:
        public = call.cloud.offers.image(image_id)
        if public is None:
            raise not_found("InvalidImageId.NotFound", "ImageId")
        found = {
            "id": image_id,
            "os_name": public.os_name,
            "size": public.size_gib,
            "architecture": public.architecture,
        }
    if found["architecture"] != architecture:
        raise ApiError(
            403, "ImageNotSupportInstanceType", "The specified image does not support the specified instance type."
        )
    return found


def new_disk(
    call: Call,
    element: Params,
    zone: str,
    *,
    instance_id: str,
    image: Doc | None,
    tags: dict[str, str],
    letter: str = "a",
) -> Doc:
    """A document of a disk; `image` makes it a system disk."""
    category = element.choice("Category", _CATEGORIES, "cloud_essd")
    smallest = image["size"] if image else 20
    size = element.number("Size", max(40, smallest) if image else 40)
    if not smallest <= size <= (2048 if image else 65_536):
        raise ApiError(
            400,
            "InvalidSystemDiskSize" if image else "InvalidDataDiskSize.ValueNotSupported",
            f"The specified disk size must be between {smallest} GiB and the limit of its category.",
        )
    level = element.choice("PerformanceLevel", _LEVELS, "PL1") if category == "cloud_essd" else ""
    return {
        "id": ids.resource_id("d"),
        "region": call.region,
        "zone": zone,
        "name": element.text("DiskName"),
        "description": element.text("Description"),
        "category": category,
        "level": level,
        "size": size,
        "type": "system" if image else "data",
        "image_id": image["id"] if image else "",
        "instance_id": instance_id,
        "status": "In_use" if instance_id else "Available",
        "device": f"/dev/xvd{letter}" if instance_id else "",
        "delete_with_instance": element.flag("DeleteWithInstance", bool(instance_id)),
        "delete_auto_snapshot": False,
        "encrypted": element.flag("Encrypted"),
        "created": call.now,
        "attached": call.now if instance_id else None,
        "resource_group": "rg-acfm-default",
        "tags": dict(tags),
    }


def _need_disk(call: Call, disk_id: str) -> Doc:
    doc = call.store.get("disk", disk_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("InvalidDiskId.NotFound", "DiskId")
    return doc


def _disk_view(doc: Doc) -> dict[str, Any]:
    attached = iso_seconds(doc["attached"]) if doc["attached"] else ""
    return {
        "DiskId": doc["id"],
        "DiskName": doc["name"],
        "Description": doc["description"],
        "RegionId": doc["region"],
        "ZoneId": doc["zone"],
        "Category": doc["category"],
        "PerformanceLevel": doc["level"],
        "Size": doc["size"],
        "Type": doc["type"],
        "Status": doc["status"],
        "InstanceId": doc["instance_id"],
        "Device": doc["device"],
        "ImageId": doc["image_id"],
        "DiskChargeType": doc.get("charge_type", "PostPaid"),
        "Encrypted": doc["encrypted"],
        "KMSKeyId": "",
        "Portable": doc["type"] == "data",
        "DeleteWithInstance": doc["delete_with_instance"],
        "DeleteAutoSnapshot": doc["delete_auto_snapshot"],
        "EnableAutoSnapshot": False,
        "EnableAutomatedSnapshotPolicy": False,
        "AutoSnapshotPolicyId": "",
        "SourceSnapshotId": "",
        "StorageSetId": "",
        "StorageSetPartitionNumber": 0,
        "MultiAttach": "Disabled",
        "BurstingEnabled": False,
        "ProvisionedIops": 0,
        "IOPS": min(1800 + 50 * doc["size"], 50_000),
        "CreationTime": iso_seconds(doc["created"]),
        "AttachedTime": attached,
        "DetachedTime": "",
        "ExpiredTime": iso_minutes(doc["expires"]) if doc.get("expires") else "2999-09-08T16:00Z",
        "ProductCode": "",
        "ResourceGroupId": doc["resource_group"],
        "SerialNumber": doc["id"].removeprefix("d-"),
        "OperationLocks": {"OperationLock": []},
        "MountInstances": {"MountInstance": []},
        "Attachments": {
            "Attachment": [{"InstanceId": doc["instance_id"], "Device": doc["device"], "AttachedTime": attached}]
            if doc["instance_id"]
            else []
        },
        "Tags": tag_list(doc),
    }


@read(
    "ecs",
    "DescribeDisks",
    "RegionId DiskIds InstanceId ZoneId DiskType Category Status DiskName SnapshotId DiskChargeType Portable "
    "DeleteWithInstance DeleteAutoSnapshot EnableAutoSnapshot EnableAutomatedSnapshotPolicy AutoSnapshotPolicyId "
    "Encrypted KMSKeyId MultiAttach LockReason ResourceGroupId DryRun AdditionalAttributes.N PageNumber PageSize "
    "MaxResults NextToken Tag.N.{Key Value}",
)
def describe_disks(call: Call) -> dict[str, Any]:
    """Disks by id, instance, type and tags."""
    params = call.params
    kind = params.choice("DiskType", ("system", "data", "all"), "all")
    docs, page = call.listing(
        "disk",
        {
            "instance_id": params.text("InstanceId"),
            "type": "" if kind == "all" else kind,
            "zone": params.text("ZoneId"),
            "category": "" if params.text("Category") == "all" else params.text("Category"),
            "status": "" if params.text("Status") == "All" else params.text("Status"),
            "name": params.text("DiskName"),
            "region": call.region,
        },
        ids=params.json_texts("DiskIds") if "DiskIds" in params else None,
        tags=params.tags(),
    )
    return {"Disks": {"Disk": [_disk_view(doc) for doc in docs]}, **page}


@write(
    "ecs",
    "CreateDisk",
    "RegionId ZoneId InstanceId DiskName Description DiskCategory Size PerformanceLevel Encrypted SnapshotId "
    "ResourceGroupId ClientToken MultiAttach EncryptAlgorithm KMSKeyId StorageSetId StorageSetPartitionNumber "
    "Tag.N.{Key Value}",
)
def create_disk(call: Call) -> dict[str, Any]:
    """Make a data disk."""
    params = call.params
    if "SnapshotId" in params:
        raise ApiError(400, "UnsupportedOperation", "This cloud has no snapshots.")
    instance_id = params.text("InstanceId")
    if instance_id:
        instance = call.store.need("instance", instance_id, not_found("InvalidInstanceId.NotFound", "InstanceId"))
        zone = instance["zone"]
    else:
        zone = params.require("ZoneId")
        call.cloud.offers.check_zone(call.region, zone)
    flat = dict(params.flat())
    flat["Category"] = params.text("DiskCategory", "cloud_essd")
    doc = new_disk(call, Params(flat), zone, instance_id="", image=None, tags=params.tags())
    doc["resource_group"] = params.text("ResourceGroupId", "rg-acfm-default")
    if instance_id:
        _attach(call, doc, instance_id)
    call.store.insert("disk", doc)
    return {"DiskId": doc["id"]}


def _attach(call: Call, doc: Doc, instance_id: str) -> None:
    taken = call.store.count("disk", {"instance_id": instance_id})
    doc.update(instance_id=instance_id, status="In_use", attached=call.now, device=f"/dev/xvd{chr(ord('a') + taken)}")


@write("ecs", "AttachDisk", "RegionId InstanceId! DiskId! Device DeleteWithInstance Bootable Force KeyPairName")
def attach_disk(call: Call) -> dict[str, Any]:
    """Bind a data disk to an instance of the same zone."""
    params = call.params
    doc = _need_disk(call, params.require("DiskId"))
    instance = call.store.need(
        "instance", params.require("InstanceId"), not_found("InvalidInstanceId.NotFound", "InstanceId")
    )
    if doc["status"] != "Available":
        raise ApiError(403, "DiskInUse", "The specified disk is in use.")
    if doc["zone"] != instance["zone"]:
        raise ApiError(403, "ResourcesNotInSameZone", "The specified instance and disk are not in the same zone.")
    _attach(call, doc, instance["id"])
    doc["delete_with_instance"] = params.flag("DeleteWithInstance")
    call.store.update("disk", doc)
    return {}


@write("ecs", "DetachDisk", "RegionId InstanceId! DiskId! DeleteWithInstance")
def detach_disk(call: Call) -> dict[str, Any]:
    """Unbind a data disk."""
    doc = _need_disk(call, call.params.require("DiskId"))
    if doc["instance_id"] != call.params.require("InstanceId") or doc["type"] == "system":
        raise ApiError(403, "DependencyViolation", "The specified disk has not been attached to the instance.")
    doc.update(instance_id="", status="Available", device="", attached=None)
    call.store.update("disk", doc)
    return {}


@write(
    "ecs",
    "ModifyDiskAttribute",
    "RegionId DiskId DiskIds.N DiskName Description DeleteWithInstance DeleteAutoSnapshot EnableAutoSnapshot "
    "BurstingEnabled",
)
def modify_disk(call: Call) -> dict[str, Any]:
    """Change name, description and what happens to the disk on release."""
    params = call.params
    for disk_id in params.texts("DiskIds") or [params.require("DiskId")]:
        doc = _need_disk(call, disk_id)
        doc["name"] = params.text("DiskName", doc["name"])
        doc["description"] = params.text("Description", doc["description"])
        doc["delete_with_instance"] = params.flag("DeleteWithInstance", doc["delete_with_instance"])
        doc["delete_auto_snapshot"] = params.flag("DeleteAutoSnapshot", doc["delete_auto_snapshot"])
        call.store.update("disk", doc)
    return {}


@write("ecs", "ResizeDisk", "RegionId DiskId! NewSize! Type ClientToken")
def resize_disk(call: Call) -> dict[str, Any]:
    """Grow a disk."""
    doc = _need_disk(call, call.params.require("DiskId"))
    size = call.params.number("NewSize", 0, 1, 65_536)
    if size <= doc["size"]:
        raise ApiError(400, "InvalidDiskSize.TooSmall", "The specified new disk size is not larger than the old one.")
    doc["size"] = size
    call.store.update("disk", doc)
    return {"OrderId": ""}


@write("ecs", "DeleteDisk", "RegionId DiskId!")
def delete_disk(call: Call) -> dict[str, Any]:
    """Delete a disk that is bound to nothing."""
    doc = _need_disk(call, call.params.require("DiskId"))
    if doc["status"] != "Available":
        raise ApiError(403, "IncorrectDiskStatus", "The current disk status does not support this operation.")
    call.store.delete("disk", doc["id"])
    return {}


# -- images ------------------------------------------------------------------------------------------------------


def _image_view(call: Call, **values: Any) -> dict[str, Any]:
    view = {
        "ImageVersion": "",
        "ImageFamily": "",
        "OSType": "linux",
        "Description": "",
        "Status": "Available",
        "Progress": "100%",
        "Usage": "instance",
        "IsSupportCloudinit": True,
        "IsSupportIoOptimized": True,
        "IsSelfShared": "",
        "IsCopied": False,
        "IsSubscribed": False,
        "ProductCode": "",
        "LoginAsNonRootSupported": False,
        "BootMode": "BIOS",
        "ResourceGroupId": "",
        "DiskDeviceMappings": {"DiskDeviceMapping": []},
        "Features": {"NvmeSupport": "supported"},
        "DetectionOptions": {"Status": "", "Items": {"Item": []}},
        "Tags": {"Tag": []},
    }
    view.update(values)
    return view


def _public_views(call: Call) -> list[dict[str, Any]]:
    return [
        _image_view(
            call,
            ImageId=item.image_id,
            ImageName=item.image_id,
            ImageOwnerAlias="system",
            ImageOwnerId=0,
            IsPublic=True,
            OSName=item.os_name,
            OSNameEn=item.os_name,
            Platform=item.platform,
            Architecture=item.architecture,
            Size=item.size_gib,
            CreationTime="2026-01-01T00:00:00Z",
        )
        for item in call.cloud.offers.images()
    ]


def _own_view(call: Call, doc: Doc) -> dict[str, Any]:
    return _image_view(
        call,
        ImageId=doc["id"],
        ImageName=doc["name"],
        Description=doc["description"],
        ImageFamily=doc["family"],
        ImageVersion=doc["version"],
        ImageOwnerAlias="self",
        ImageOwnerId=int(call.cloud.account_id),
        IsPublic=False,
        OSName=doc["os_name"],
        OSNameEn=doc["os_name"],
        Platform=doc["platform"],
        Architecture=doc["architecture"],
        Size=doc["size"],
        Status=doc["status"],
        Progress="100%" if doc["status"] == "Available" else "0%",
        Usage="instance" if call.store.count("instance", {"image_id": doc["id"]}) else "none",
        BootMode=doc["boot_mode"],
        ResourceGroupId=doc["resource_group"],
        CreationTime=iso_seconds(doc["created"]),
        DiskDeviceMappings={
            "DiskDeviceMapping": [
                {
                    "Device": "/dev/xvda",
                    "Size": str(doc["size"]),
                    "Type": "system",
                    "Format": "",
                    "SnapshotId": "",
                    "Progress": "100%",
                    "RemainTime": 0,
                    "ImportOSSBucket": "",
                    "ImportOSSObject": "",
                }
            ]
        },
        Tags=tag_list(doc),
    )


@read(
    "ecs",
    "DescribeImages",
    "RegionId ImageId ImageName ImageFamily ImageOwnerAlias ImageOwnerId OSType Architecture Usage Status SnapshotId "
    "InstanceType IsSupportIoOptimized IsSupportCloudinit IsPublic ShowExpired ActionType ResourceGroupId DryRun "
    "PageNumber PageSize Tag.N.{Key Value}",
)
def describe_images(call: Call) -> dict[str, Any]:
    """Public images and one's own."""
    params = call.params
    owner = params.choice("ImageOwnerAlias", ("system", "self", "others", "marketplace"))
    own = [_own_view(call, doc) for doc in call.store.find("image", {"region": call.region})]
    views: list[dict[str, Any]] = []
    if owner in ("", "self"):
        views += own
    if owner in ("", "system") and not params.tags():
        views += _public_views(call)
    wanted = {item for item in params.text("ImageId").split(",") if item}
    if wanted:
        views = [view for view in views if view["ImageId"] in wanted]
    for name, key in (
        ("ImageName", "ImageName"),
        ("ImageFamily", "ImageFamily"),
        ("OSType", "OSType"),
        ("Architecture", "Architecture"),
        ("Usage", "Usage"),
    ):
        if value := params.text(name):
            views = [view for view in views if view[key] == value]
    if instance_type := params.text("InstanceType"):
        architecture = call.cloud.offers.instance_type(instance_type).architecture
        views = [view for view in views if view["Architecture"] == architecture]
    states = {item for item in params.text("Status", "Available").split(",") if item}
    views = [view for view in views if view["Status"] in states]
    for key, value in params.tags().items():
        views = [
            view
            for view in views
            if any(tag["TagKey"] == key and value in ("", tag["TagValue"]) for tag in view["Tags"]["Tag"])
        ]
    size, number = params.number("PageSize", 10, 1, 100), params.number("PageNumber", 1, 1)
    return {
        "RegionId": call.region,
        "TotalCount": len(views),
        "PageNumber": number,
        "PageSize": size,
        "Images": {"Image": views[(number - 1) * size : number * size]},
    }


@write(
    "ecs",
    "CreateImage",
    "RegionId InstanceId SnapshotId ImageName Description ImageFamily ImageVersion Platform Architecture BootMode "
    "ResourceGroupId DetectionStrategy ClientToken DryRun Features.NvmeSupport Tag.N.{Key Value}",
)
def create_image(call: Call) -> dict[str, Any]:
    """Make an image of an instance's system disk."""
    params = call.params
    if "SnapshotId" in params:
        raise ApiError(400, "UnsupportedOperation", "This cloud has no snapshots.")
    instance = call.store.need(
        "instance", params.require("InstanceId"), not_found("InvalidInstanceId.NotFound", "InstanceId")
    )
    if instance["status"] not in ("Running", "Stopped"):
        raise ApiError(403, "IncorrectInstanceStatus", "The current status of the resource does not support this.")
    name = params.text("ImageName", "image-" + ids.text(10))
    if call.store.count("image", {"name": name, "region": call.region}):
        raise ApiError(400, "InvalidImageName.Duplicated", "The specified image name has been used.")
    kind = call.cloud.offers.instance_type(instance["instance_type"])
    disk = call.store.get("disk", instance["system_disk_id"])
    doc = {
        "id": ids.resource_id("m"),
        "region": call.region,
        "name": name,
        "description": params.text("Description"),
        "family": params.text("ImageFamily"),
        "version": params.text("ImageVersion"),
        "platform": params.text("Platform", "Others Linux"),
        "os_name": instance["os_name"],
        "architecture": kind.architecture,
        "boot_mode": params.text("BootMode", "BIOS"),
        "size": disk["size"] if disk else 40,
        "instance_id": instance["id"],
        "status": "Creating",
        "created": call.now,
        "resource_group": params.text("ResourceGroupId", "rg-acfm-default"),
        "tags": params.tags(),
    }
    call.store.insert("image", doc)
    if call.cloud.driver.real:
        cloud, image_id = call.cloud, doc["id"]

        def done(worked: bool) -> None:
            with cloud.store.transaction():
                if image := cloud.store.get("image", image_id):
                    image["status"] = "Available" if worked else "CreateFailed"
                    cloud.store.update("image", image)

        call.after(lambda driver: driver.create_image(instance["id"], image_id, done))
    else:
        call.store.set_timer("image", doc["id"], "ready", call.now + call.cloud.knobs.image_creation)
    return {"ImageId": doc["id"]}


def _need_image(call: Call, image_id: str) -> Doc:
    doc = call.store.get("image", image_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("InvalidImageId.NotFound", "ImageId")
    return doc


@write(
    "ecs",
    "ModifyImageAttribute",
    "RegionId ImageId! ImageName Description ImageFamily Status BootMode LicenseType DryRun",
)
def modify_image(call: Call) -> dict[str, Any]:
    """Change name and description of one's own image."""
    doc = _need_image(call, call.params.require("ImageId"))
    for name, key in (("ImageName", "name"), ("Description", "description"), ("ImageFamily", "family")):
        if (value := call.params.optional(name)) is not None:
            doc[key] = value
    call.store.update("image", doc)
    return {}


@write("ecs", "DeleteImage", "RegionId ImageId! Force")
def delete_image(call: Call) -> dict[str, Any]:
    """Delete one's own image; Force is needed while instances use it."""
    doc = _need_image(call, call.params.require("ImageId"))
    if call.store.count("instance", {"image_id": doc["id"]}) and not call.params.flag("Force"):
        raise ApiError(403, "ImageUsed", "The specified image is in use by instances.")
    call.store.delete("image", doc["id"])
    image_id = doc["id"]
    call.after(lambda driver: driver.delete_image(image_id))
    return {}


@read("ecs", "DescribeImageSupportInstanceTypes", "RegionId ImageId! ActionType Filter.N.{Key Value}")
def image_types(call: Call) -> dict[str, Any]:
    """Types that an image boots on."""
    image_id = call.params.require("ImageId")
    own = call.store.get("image", image_id)
    public = call.cloud.offers.image(image_id)
    if own is None and public is None:
        raise not_found("InvalidImageId.NotFound", "ImageId")
    architecture = own["architecture"] if own else public.architecture if public else ""
    return {
        "RegionId": call.region,
        "ImageId": image_id,
        "InstanceTypes": {
            "InstanceType": [
                {
                    "InstanceTypeId": kind.name,
                    "InstanceTypeFamily": kind.family,
                    "CpuCoreCount": kind.vcpus,
                    "MemorySize": kind.memory_gib,
                }
                for kind in call.cloud.offers.instance_types()
                if kind.architecture == architecture
            ]
        },
    }


def on_timer(call: Call, image_ids: Sequence[str], event: str) -> None:
    """Images have become ready."""
    if event == "ready":
        call.store.change("image", call.store.get_many("image", image_ids), {"status": "Available"})
