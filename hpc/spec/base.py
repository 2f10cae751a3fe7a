"""What every model of the stack file has in common: frozen, unknown keys refused, names with one shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import PydanticCustomError, core_schema


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


@dataclass(frozen=True, slots=True)
class Form:
    """Annotation of a text field: the pattern it must match, and what the user is told where it does not.

    Attributes:
        pattern: regular expression of the whole text.
        meaning: what the text must be, for a sentence that begins "is not ...".
    """

    pattern: str
    meaning: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """A strict text with the pattern; any other value gives one error of the type `hpc_form`."""
        return core_schema.custom_error_schema(
            core_schema.str_schema(pattern=self.pattern, strict=True),
            custom_error_type="hpc_form",
            custom_error_message=f"is not {self.meaning}",
        )


#: Whole numbers as they are written: no text, no `true`, no `8.0`.
Whole = Annotated[int, Field(strict=True)]

#: Names of clusters and pools: lower case letters, digits and inner hyphens, at most 24 characters, first a letter.
#: (Host names are `<pool>-<n>` and ECS host names allow hyphens inside only.)
Name = Annotated[
    str,
    Form(
        r"^[a-z](?:[a-z0-9-]{0,22}[a-z0-9])?$",
        "a name: at most 24 lower case letters, digits and inner hyphens, first a letter",
    ),
]

#: A zone id such as `cn-hangzhou-j`.
ZoneId = Annotated[str, Form(r"^[a-z]{2,3}-[a-z0-9-]{2,30}$", "a zone id such as cn-hangzhou-j")]

#: A region id such as `cn-hangzhou`.
RegionId = Annotated[str, Form(r"^[a-z]{2,3}-[a-z0-9-]{2,24}$", "a region id such as cn-hangzhou")]

#: An ECS instance type such as `ecs.c8ae.32xlarge`.
InstanceTypeName = Annotated[
    str,
    Form(
        r"^ecs\.[a-z0-9-]{1,24}\.[a-z0-9]{1,16}(\.[a-z0-9]{1,16})?$",
        "an ECS instance type such as ecs.c8ae.32xlarge",
    ),
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
