"""Which image nodes boot: the newest public build of a distribution, or one's own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pulumi

from components.sdk import ecs
from hpc.catalog import Catalog
from hpc.errors import CannotRunError, RefusedError
from hpc.spec.image import ImageSpec


@dataclass(frozen=True, slots=True)
class ImageFinder:
    """Looks images up, each distribution and architecture once.

    Attributes:
        catalog: what is known about images and instance types.
        provider: where to look; the default provider unless given.
    """

    catalog: Catalog
    provider: pulumi.ProviderResource | None = None
    _found: dict[tuple[str, str], str] = field(default_factory=dict)

    def image_id(self, image: ImageSpec, instance_type: str) -> str:
        """Id of the image as a plain value, so that policies know it at preview.

        Args:
            image: what the stack file asks for.
            instance_type: decides the architecture.

        Raises:
            RefusedError: HPC705, no public image of the distribution for this architecture is known.
            CannotRunError: HPC706, the cloud has none in this region.
        """
        if image.image_id:
            return image.image_id
        kind = self.catalog.instance_type(instance_type)
        key = (image.os.value, kind.architecture if kind else "x86_64")
        if key not in self._found:
            self._found[key] = self._newest(*key)
        return self._found[key]

    def _newest(self, os: str, architecture: str) -> str:
        known = self.catalog.image(os, architecture)
        if known is None:
            raise RefusedError(
                f"no public image of {os} for {architecture} is known",
                code="HPC705",
                fix="choose another image.os, other instance types, or give image.image_id",
            )
        found = ecs.get_images(
            owners="system",
            name_regex=known.name_regex,
            architecture=architecture,
            most_recent=True,
            opts=pulumi.InvokeOptions(provider=self.provider),
        )
        if not found.ids:
            raise CannotRunError(
                f"the region has no public image of {os} for {architecture} (name {known.name_regex})",
                code="HPC706",
                fix="give image.image_id, or choose another image.os",
            )
        return found.ids[0]
