"""What every model of the stack file has in common: frozen, unknown keys refused, names with one shape."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from pydantic_core import PydanticCustomError


class SpecModel(BaseModel):
    """Base of the models: frozen, extra keys refused, defaults validated, field docs go into the JSON schema."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        use_attribute_docstrings=True,
        str_strip_whitespace=True,
        allow_inf_nan=False,
    )


#: Names of clusters and pools: lower case letters, digits and inner hyphens, at most 24 characters, first a letter.
#: (Host names are `<pool>-<n>` and ECS host names allow hyphens inside only.)
Name = Annotated[str, StringConstraints(pattern=r"^[a-z](?:[a-z0-9-]{0,22}[a-z0-9])?$", strict=True)]

#: A zone id such as `cn-hangzhou-j`.
ZoneId = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}-[a-z0-9-]{2,30}$", strict=True)]

#: A region id such as `cn-hangzhou`.
RegionId = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}-[a-z0-9-]{2,24}$", strict=True)]

#: An ECS instance type such as `ecs.c8ae.32xlarge`.
InstanceTypeName = Annotated[
    str, StringConstraints(pattern=r"^ecs\.[a-z0-9-]{1,24}\.[a-z0-9]{1,16}(\.[a-z0-9]{1,16})?$", strict=True)
]


def _not_reserved(value: str) -> str:
    if value.lower().startswith(("aliyun", "acs:", "http://", "https://")):
        raise PydanticCustomError(
            "hpc_tag", "begins with aliyun, acs:, http:// or https://, which ECS keeps for itself"
        )
    return value


#: Tag key as ECS accepts it: 1 to 128 characters, not beginning with `aliyun`, `acs:`, `http://` or `https://`.
TagKey = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f]+$"),
    AfterValidator(_not_reserved),
]

#: Tag value as ECS accepts it: up to 128 characters.
TagValue = Annotated[str, StringConstraints(max_length=128, pattern=r"^[^\x00-\x1f]*$"), AfterValidator(_not_reserved)]
