"""What is known about instance types, regions, images and prices, with source and date of every row."""

from hpc.catalog.catalog import Catalog, default_override_files, load_catalog
from hpc.catalog.model import Capability, Family, Image, InstanceType, Price, Region, Reliability

__all__ = [
    "Capability",
    "Catalog",
    "Family",
    "Image",
    "InstanceType",
    "Price",
    "Region",
    "Reliability",
    "default_override_files",
    "load_catalog",
]
