"""What the cloud sells: regions, zones, instance types, public images and prices, taken from the project's catalog."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from hpc.catalog import Catalog, Image, InstanceType, load_catalog
from localcloud.api.errors import ApiError, not_found

#: Price of a vCPU hour in CNY for types whose price nobody knows, so that the local cloud can still answer and sort.
#: It is this cloud's own figure (the published c8i rate), not a quotation.
NOMINAL_VCPU_HOUR = Decimal("0.3385")
_GIB_MONTH_DISK = {"PL0": "0.5", "PL1": "1.0", "PL2": "2.0", "PL3": "4.0"}


@dataclass(frozen=True, slots=True)
class SystemImage:
    """A public image as DescribeImages lists it."""

    image_id: str
    os_name: str
    platform: str
    architecture: str
    size_gib: int


_PLATFORMS = {
    "alinux-3": "Aliyun",
    "rocky-9": "Rocky Linux",
    "ubuntu-22.04": "Ubuntu",
    "ubuntu-24.04": "Ubuntu",
    "debian-12": "Debian",
}


class Offers:
    """A view on the catalog with the errors and defaults of the API."""

    def __init__(self, catalog: Catalog | None = None) -> None:
        self.catalog = catalog or load_catalog()
        self._images = {item.image_id: self._system_image(item) for item in self.catalog.images()}

    @staticmethod
    def _system_image(item: Image) -> SystemImage:
        bits = "64 bit" if item.architecture == "x86_64" else "64 bit ARM"
        return SystemImage(
            item.image_id, f"{item.title} {bits}", _PLATFORMS.get(item.os, "Others Linux"), item.architecture, 20
        )

    def zones(self, region: str) -> tuple[str, ...]:
        """Zones of a region.

        Raises:
            ApiError: `InvalidRegionId.NotFound`.
        """
        known = self.catalog.region(region)
        if known is None:
            raise not_found("InvalidRegionId.NotFound", "RegionId")
        return known.zones

    def regions(self) -> tuple[tuple[str, str], ...]:
        """All regions as (id, name)."""
        return tuple((region.id, region.title) for region in self.catalog.regions())

    def check_zone(self, region: str, zone: str, code: str = "InvalidZoneId.NotFound") -> None:
        """Refuse a zone that the region does not have."""
        if zone not in self.zones(region):
            raise not_found(code, "ZoneId")

    def instance_type(self, name: str) -> InstanceType:
        """The type.

        Raises:
            ApiError: `InvalidInstanceType.ValueNotSupported`.
        """
        found = self.catalog.instance_type(name)
        if found is None:
            raise ApiError(
                400, "InvalidInstanceType.ValueNotSupported", "The specified InstanceType beyond the permitted range."
            )
        return found

    def instance_types(self) -> tuple[InstanceType, ...]:
        """All types."""
        return self.catalog.instance_types()

    def images(self) -> tuple[SystemImage, ...]:
        """All public images."""
        return tuple(self._images.values())

    def image(self, image_id: str) -> SystemImage | None:
        """A public image by its id."""
        return self._images.get(image_id)

    def price_hour(self, name: str, region: str, spot_ratio: float, charge: Literal["payg", "spot"]) -> Decimal:
        """Price of an instance type in CNY per hour; nominal where the catalog knows none."""
        payg = self.catalog.price(name, region, "payg").amount
        if payg is None:
            payg = NOMINAL_VCPU_HOUR * self.instance_type(name).vcpus
        if charge == "payg":
            return payg.quantize(Decimal("0.001"))
        return (payg * Decimal(str(spot_ratio))).quantize(Decimal("0.001"))

    def price_disk_hour(self, category: str, level: str, size_gib: int, region: str) -> Decimal:
        """Price of a disk in CNY per hour."""
        item = f"disk/{category}/{level}" if category == "cloud_essd" else f"disk/{category}"
        found = self.catalog.price(item, region, "payg")
        if found.amount is not None and found.unit == "GiB-hour":
            return found.amount * size_gib
        month = found.amount if found.amount is not None else Decimal(_GIB_MONTH_DISK.get(level, "0.35"))
        return (month * size_gib / 720).quantize(Decimal("0.00001"))
