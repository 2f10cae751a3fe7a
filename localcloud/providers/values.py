"""Between the engine's protobuf structs and plain Python values."""

from __future__ import annotations

from typing import Any

from google.protobuf import struct_pb2

#: How the engine writes a value that a preview does not know yet (sdk/go/common/resource/plugin/rpc.go).
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

#: Key that marks a wrapped special value (secret, asset, archive) and the mark of a secret.
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  a marker of the wire format, not a secret


def to_python(value: struct_pb2.Value) -> Any:
    """A protobuf value as plain Python: whole numbers become int, secrets are unwrapped, unknowns stay `UNKNOWN`."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = {key: to_python(item) for key, item in value.struct_value.fields.items()}
        return fields["value"] if fields.get(SIGNATURE) == SECRET else fields
    if kind == "list_value":
        return [to_python(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return value.string_value
    if kind == "bool_value":
        return value.bool_value
    return None


def from_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """A protobuf struct as a dict; keys that the SDKs keep for themselves (`__defaults` and so on) are left out."""
    return {key: to_python(item) for key, item in struct.fields.items() if not key.startswith("__")}


def to_struct(values: dict[str, Any]) -> struct_pb2.Struct:
    """A dict as a protobuf struct; None values are left out."""
    struct = struct_pb2.Struct()
    struct.update({key: item for key, item in values.items() if item is not None})
    return struct


def has_unknown(value: Any) -> bool:
    """Whether a value, or anything in it, is not known yet."""
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return isinstance(value, str) and value == UNKNOWN
