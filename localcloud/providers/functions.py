"""The functions (data sources) of the stand-in alicloud provider."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from localcloud.providers.client import Cloud


def get_images(cloud: Cloud, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Images by owner and name pattern, the newest first where `mostRecent` is asked."""
    images: list[dict[str, Any]] = []
    page = 1
    while True:
        answer = cloud.call(
            "ecs",
            "DescribeImages",
            {
                "ImageOwnerAlias": arguments.get("owners"),
                "OSType": arguments.get("osType"),
                "Architecture": arguments.get("architecture"),
                "ImageId": arguments.get("imageId"),
                "ImageFamily": arguments.get("imageFamily"),
                "PageNumber": page,
                "PageSize": 100,
            },
        )
        images += answer["Images"]["Image"]
        if page * 100 >= int(answer.get("TotalCount", 0)):
            break
        page += 1
    if pattern := arguments.get("nameRegex"):
        images = [image for image in images if re.search(pattern, image.get("ImageName") or image["ImageId"])]
    if arguments.get("mostRecent") and images:
        images = [max(images, key=lambda image: image.get("CreationTime", ""))]
    return {
        **arguments,
        "id": "images",
        "ids": [image["ImageId"] for image in images],
        "images": [
            {
                "id": image["ImageId"],
                "imageId": image["ImageId"],
                "name": image.get("ImageName"),
                "architecture": image.get("Architecture"),
                "osName": image.get("OSName"),
                "osType": image.get("OSType"),
                "creationTime": image.get("CreationTime"),
                "size": image.get("Size"),
                "status": image.get("Status"),
            }
            for image in images
        ],
    }


def get_zones(cloud: Cloud, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Zones of the region."""
    zones = sorted(zone["ZoneId"] for zone in cloud.call("ecs", "DescribeZones", {})["Zones"]["Zone"])
    return {**arguments, "id": "zones", "ids": zones, "zones": [{"id": zone} for zone in zones]}


def get_account(cloud: Cloud, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The account that the access key belongs to."""
    return {"id": cloud.call("sts", "GetCallerIdentity", {})["AccountId"]}


FUNCTIONS: dict[str, Callable[[Cloud, Mapping[str, Any]], dict[str, Any]]] = {
    "alicloud:ecs/getImages:getImages": get_images,
    "alicloud:index/getZones:getZones": get_zones,
    "alicloud:index/getAccount:getAccount": get_account,
}
