"""Values with units, parsed once: durations, port ranges, networks, money, memory sizes."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

_DURATION = re.compile(r"(\d{1,6})(s|m|h|d)")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _parse_duration(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value
    text = str(value).strip().lower() if isinstance(value, str) else ""
    if not text or _DURATION.sub("", text) or len(text) > 40:
        raise PydanticCustomError("hpc_duration", "is not a duration such as 90s, 10m, 24h or 1h30m")
    return timedelta(seconds=sum(int(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION.findall(text)))


def format_duration(value: timedelta) -> str:
    """A duration as it is written in a stack file, largest units first: `1h30m`; zero is `0s`."""
    seconds = int(value.total_seconds())
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


#: A length of time, written `90s`, `10m`, `24h`, `1h30m` or `7d`.
Duration = Annotated[
    timedelta,
    BeforeValidator(_parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^(\d{1,6}[smhd])+$", "examples": ["10m", "24h", "1h30m"]}),
]


@dataclass(frozen=True, slots=True, order=True)
class PortRange:
    """An inclusive range of TCP or UDP ports, 1 to 65535."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of ports in the range."""
        return self.last - self.first + 1

    def overlaps(self, other: PortRange) -> bool:
        """Whether the two ranges share a port."""
        return self.first <= other.last and other.first <= self.last

    def as_rule(self) -> str:
        """The range as a security group rule writes it: `30000/31000`."""
        return f"{self.first}/{self.last}"

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    @classmethod
    def parse(cls, value: Any) -> PortRange:
        """Read `30000-31000` or a single port; raises PydanticCustomError where it is neither."""
        if isinstance(value, cls):
            return value
        text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
        match = re.fullmatch(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?", text)
        if not match:
            raise PydanticCustomError("hpc_port_range", "is not a port range such as 30000-31000")
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if not 1 <= first <= last <= 65535:
            raise PydanticCustomError("hpc_port_range", "must run from a lower to a higher port within 1-65535")
        return cls(first, last)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Validate with `parse`, serialise with `str`."""
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.plain_serializer_function_ser_schema(str, return_schema=None)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: Any) -> dict[str, Any]:
        """The schema editors see."""
        return {"type": "string", "pattern": r"^\d{1,5}(-\d{1,5})?$", "examples": ["30000-31000"]}


def _parse_network(value: Any) -> Any:
    if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
        return value
    if not isinstance(value, str) or len(value) > 64:
        raise PydanticCustomError("hpc_cidr", "is not a network in CIDR notation such as 10.16.0.0/16")
    try:
        return ipaddress.ip_network(value.strip(), strict=True)
    except ValueError as error:
        try:
            meant = ipaddress.ip_network(value.strip(), strict=False)
        except ValueError:
            raise PydanticCustomError("hpc_cidr", "is not a network in CIDR notation such as 10.16.0.0/16") from error
        raise PydanticCustomError(
            "hpc_cidr", "has address bits set behind its prefix; {meant} is the network", {"meant": str(meant)}
        ) from error


def _parse_ipv4_network(value: Any) -> Any:
    network = _parse_network(value)
    if not isinstance(network, ipaddress.IPv4Network):
        raise PydanticCustomError("hpc_cidr", "must be an IPv4 network")
    return network


_CIDR_SCHEMA = WithJsonSchema({"type": "string", "examples": ["10.16.0.0/16"]})

#: An IPv4 network in CIDR notation, host bits zero.
Cidr4 = Annotated[
    ipaddress.IPv4Network, BeforeValidator(_parse_ipv4_network), PlainSerializer(str, return_type=str), _CIDR_SCHEMA
]

#: An IPv4 or IPv6 network in CIDR notation, host bits zero.
Cidr = Annotated[
    ipaddress.IPv4Network | ipaddress.IPv6Network,
    BeforeValidator(_parse_network),
    PlainSerializer(str, return_type=str),
    _CIDR_SCHEMA,
]


def _parse_money(value: Any) -> Any:
    if isinstance(value, Decimal):
        amount = value
    elif isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise PydanticCustomError("hpc_money", "is not an amount of money such as 900 or 0.45")
    else:
        text = str(value).strip()
        if not re.fullmatch(r"\d{1,12}(\.\d{1,6})?", text):
            raise PydanticCustomError("hpc_money", "is not an amount of money such as 900 or 0.45")
        amount = Decimal(text)
    return amount


#: An amount of money in the currency of the budget (CNY unless it says otherwise), not negative.
Money = Annotated[
    Decimal,
    BeforeValidator(_parse_money),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": ["number", "string"], "minimum": 0}),
]

_MEMORY = re.compile(r"(\d{1,9})\s*(MiB|GiB|TiB)")
_MEMORY_MIB = {"MiB": 1, "GiB": 1024, "TiB": 1024 * 1024}


def _parse_memory(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _MEMORY.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 40 else None
    if not match:
        raise PydanticCustomError("hpc_memory", "is not a memory size such as 512MiB or 16GiB")
    return int(match[1]) * _MEMORY_MIB[match[2]]


#: A memory size in MiB, written `512MiB`, `16GiB` or `1TiB`.
MemoryMib = Annotated[
    int,
    BeforeValidator(_parse_memory),
    Field(ge=0),
    WithJsonSchema({"type": "string", "pattern": r"^\d+\s*(MiB|GiB|TiB)$", "examples": ["16GiB"]}),
]
