"""Rules on operating systems and images against instance types."""

from __future__ import annotations

from collections.abc import Iterator

from hpc.catalog.model import InstanceType
from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.image import ImageSpec
from hpc.spec.pool import Interconnect
from hpc.spec.rules.context import Context, listed


def _booted(context: Context) -> Iterator[tuple[str, str, ImageSpec, InstanceType]]:
    """Every known type: its path, the path of the image it boots, that image, the type."""
    for path, pool, kind in context.pool_types:
        image = f"{path.split('.')[0]}.image" if pool.image else "image"
        yield path, image, context.spec.pool_image(pool), kind
    for section, name, count in context.long_lived:
        found = context.catalog.instance_type(name)
        if found is not None and count:
            yield f"{section}.instance_type", "image", context.spec.image, found


def os_of_family(context: Context) -> Iterator[Finding]:
    """HPC309: the family supports the operating system."""
    for path, _, image, kind in _booted(context):
        if kind.supported_os is not None and image.os not in kind.supported_os:
            text = f"{kind.family} supports {listed(kind.supported_os)}, not {image.os}"
            yield finding("HPC309", path, kind.name, text)


def image_for_architecture(context: Context) -> Iterator[Finding]:
    """HPC310: there is an image of the distribution for the type's architecture."""
    for path, _, image, kind in _booted(context):
        if image.image_id is None and context.catalog.image(image.os, kind.architecture) is None:
            text = f"there is no image of {image.os} for {kind.architecture}, which {kind.name} has"
            yield finding("HPC310", path, kind.name, text)


def image_of_one_architecture(context: Context) -> Iterator[Finding]:
    """HPC311: what boots one image id has one architecture."""
    used: dict[tuple[str, str], dict[str, str]] = {}
    for _, where, image, kind in _booted(context):
        if image.image_id:
            used.setdefault((where, image.image_id), {}).setdefault(kind.architecture, kind.name)
    for (where, image_id), kinds in used.items():
        # Types of one pool that differ are reported as such.
        if len(kinds) > 1 and where == "image":
            who = listed([f"{name} ({architecture})" for architecture, name in kinds.items()])
            yield finding("HPC311", f"{where}.image_id", image_id, f"{image_id} would be booted by {who}")


def one_architecture(context: Context) -> Iterator[Finding]:
    """HPC312: pools have the architecture on which software is built."""
    built_on = [name for _, name, count in reversed(context.long_lived) if count]
    builder = next((kind for name in built_on if (kind := context.catalog.instance_type(name)) is not None), None)
    if builder is None:
        return
    for path, pool in context.pools:
        types = context.types_of(pool)
        if types and types[0].architecture != builder.architecture:
            text = (
                f"pool {pool.name} is {types[0].architecture}, but {builder.name}, on which software is built, "
                f"is {builder.architecture}"
            )
            yield finding("HPC312", f"{path}.instance_types", list(pool.instance_types), text)


def erdma_driver(context: Context) -> Iterator[Finding]:
    """HPC307: the eRDMA driver is there for the distribution of an eRDMA pool."""
    for path, pool in context.pools:
        image, types = context.spec.pool_image(pool), context.types_of(pool)
        if pool.interconnect is not Interconnect.ERDMA or image.baked:
            continue
        known = context.catalog.image(image.os, types[0].architecture if types else "x86_64")
        if known is not None and not known.erdma_driver:
            text = f"pool {pool.name} uses eRDMA, whose driver is not listed for {known.title}"
            yield finding("HPC307", f"{path}.image.os" if pool.image else "image.os", str(image.os), text)


def baked_image_has_id(context: Context) -> Iterator[Finding]:
    """HPC342: a baked image is named."""
    images = [("image", context.spec.image), *((f"{path}.image", pool.image) for path, pool in context.pools)]
    for path, image in images:
        if image is not None and image.baked and not image.image_id:
            yield finding("HPC342", f"{path}.baked", True, "the image is said to be baked, but image_id is not given")


RULES = (
    os_of_family,
    image_for_architecture,
    image_of_one_architecture,
    one_architecture,
    erdma_driver,
    baked_image_has_id,
)
