"""The operating system that nodes boot."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from hpc.spec.base import Form, SpecModel


class OperatingSystem(StrEnum):
    """Distributions that the bootstrap scripts know."""

    ALINUX_3 = "alinux-3"
    ROCKY_9 = "rocky-9"
    UBUNTU_22_04 = "ubuntu-22.04"
    UBUNTU_24_04 = "ubuntu-24.04"
    DEBIAN_12 = "debian-12"


class ImageSpec(SpecModel):
    """A public image by distribution, or one's own (for instance baked) image by id."""

    os: OperatingSystem = OperatingSystem.ALINUX_3
    """Distribution; the newest public image of it is used unless `image_id` is given."""

    image_id: Annotated[str, Form(r"^[A-Za-z0-9_.-]{4,128}$", "the id of an image such as m-bp1abcdefgh")] | None = None
    """Boot this image; `os` must say which distribution is in it."""

    baked: bool = False
    """The image already holds Slurm, MPI and the eRDMA driver (made by `scripts/bootstrap/compute.sh --bake`)."""
