"""Which members of a resource can be searched for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: Indexed members by kind. A list counts with each of its elements. Tags are indexed for every kind.
INDEXED: Mapping[str, tuple[str, ...]] = {
    "vpc": ("region", "name"),
    "vswitch": ("region", "vpc_id", "zone", "name"),
    "route_table": ("region", "vpc_id"),
    "nat": ("region", "vpc_id", "vswitch_id"),
    "snat": ("nat_id", "snat_table_id", "vswitch_id", "snat_ips"),
    "eip": ("region", "address", "instance_id", "status"),
    "security_group": ("region", "vpc_id", "name"),
    "rule": ("group_id", "peer_group_id"),
    "key_pair": ("region", "name"),
    "launch_template": ("region", "name"),
    "launch_template_version": ("template_id",),
    "deployment_set": ("region",),
    "instance": (
        "region", "zone", "vpc_id", "vswitch_id", "status", "instance_type", "name", "security_group_ids", "image_id",
        "key_pair", "private_ip", "ram_role", "deployment_set_id", "stock_key",
    ),
    "eni": (
        "region", "vpc_id", "vswitch_id", "instance_id", "security_group_ids", "private_ip", "status", "type", "name",
    ),
    "disk": ("region", "zone", "instance_id", "type", "category", "status", "name"),
    "image": ("region", "name", "instance_id"),
    "file_system": ("region", "fs_type", "storage_type"),
    "access_group": ("region", "fs_type", "name"),
    "access_rule": ("access_group_id",),
    "mount_target": ("file_system_id", "access_group_id", "vswitch_id", "vpc_id", "security_group_id"),
    "role": (),
    "policy": (),
    "oidc_provider": ("issuer",),
    "policy_attachment": ("role", "policy_key"),
}  # fmt: skip

#: As the value of a filter: any value, as long as there is one (requests cannot carry NUL).
ANY = "\0any"
#: Kinds that are indexed by combinations of members, too.
COMBINED = frozenset({"eni"})


def attributes(kind: str, doc: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is indexed of a document, as (key, value)."""
    for key in INDEXED[kind]:
        value = doc.get(key)
        if isinstance(value, list):
            for item in dict.fromkeys(value):
                yield key, item
        elif value not in (None, ""):
            yield key, str(value)
    if kind == "eni":
        yield f"ip@{doc['vswitch_id']}", doc["private_ip"]
    for name, value in (doc.get("tags") or {}).items():
        yield f"tag:{name}", value
