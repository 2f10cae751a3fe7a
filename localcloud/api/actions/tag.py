"""Tags of resources, in the forms that each product has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from localcloud.api.call import Call
from localcloud.api.errors import ApiError, invalid, not_found
from localcloud.api.registry import read, write
from localcloud.api.store import Doc
from localcloud.api.store.index import ANY

#: Resource types by product, in lower case, and the kind in the database.
KINDS: Mapping[str, Mapping[str, str]] = {
    "ecs": {
        "instance": "instance",
        "disk": "disk",
        "eni": "eni",
        "securitygroup": "security_group",
        "keypair": "key_pair",
        "launchtemplate": "launch_template",
        "image": "image",
        "deploymentset": "deployment_set",
    },
    "vpc": {
        "vpc": "vpc",
        "vswitch": "vswitch",
        "routetable": "route_table",
        "eip": "eip",
        "natgateway": "nat",
        "nat": "nat",
    },
    "nas": {"filesystem": "file_system"},
    "ram": {"role": "role", "policy": "policy"},
}
_REGIONAL_NAMES = {"key_pair"}
#: How DescribeTags names the kinds that it counts.
_COUNTED = {
    "instance": "Instance",
    "disk": "Disk",
    "eni": "Eni",
    "security_group": "Securitygroup",
    "key_pair": "KeyPair",
    "launch_template": "LaunchTemplate",
    "image": "Image",
    "deployment_set": "DeploymentSet",
}


def _kind(call: Call, product: str) -> str:
    kind = KINDS[product].get(call.params.require("ResourceType").lower())
    if kind is None:
        raise ApiError(400, "InvalidResourceType.NotFound", "The specified ResourceType is not found.")
    return kind


def _key(call: Call, kind: str, resource_id: str) -> str:
    return f"{call.region}/{resource_id}" if kind in _REGIONAL_NAMES else resource_id


def _docs(call: Call, kind: str, wanted: list[str]) -> list[Doc]:
    if len(wanted) > 50:
        raise invalid("ResourceId", "At most 50 can be given.")
    return [
        call.store.need(kind, _key(call, kind, item), not_found("InvalidResourceId.NotFound", "ResourceIds"))
        for item in wanted
    ]


def add_tags(call: Call, kind: str, wanted: list[str], tags: dict[str, str]) -> dict[str, Any]:
    """Give resources tags; equal keys are overwritten."""
    if not tags:
        raise ApiError(400, "MissingParameter.Tag", "The parameter Tag is mandatory.")
    for doc in _docs(call, kind, wanted):
        merged = {**doc["tags"], **tags}
        if len(merged) > 20:
            raise ApiError(403, "TagNumExceed", "The maximum number of tags of a resource is 20.")
        doc["tags"] = merged
        call.store.update(kind, doc)
    return {}


def remove_tags(call: Call, kind: str, wanted: list[str], keys: list[str], everything: bool) -> dict[str, Any]:
    """Take tags away."""
    for doc in _docs(call, kind, wanted):
        doc["tags"] = {} if everything and not keys else {k: v for k, v in doc["tags"].items() if k not in keys}
        call.store.update(kind, doc)
    return {}


def list_tags(call: Call, kind: str, wanted: list[str], tags: dict[str, str], product: str) -> dict[str, Any]:
    """Tags of resources, one row per tag."""
    if wanted:
        docs = [
            doc
            for item in wanted
            if (doc := call.store.get(kind, _key(call, kind, item)))
            and all(key in doc["tags"] and value in ("", doc["tags"][key]) for key, value in tags.items())
        ]
    elif tags:
        docs = call.store.find(kind, {f"tag:{key}": value or ANY for key, value in tags.items()}, limit=1000)
    else:
        raise ApiError(400, "MissingParameter.ResourceId", "ResourceId or Tag is mandatory.")
    rows = [
        {
            "ResourceId": doc["name"] if kind in _REGIONAL_NAMES else doc["id"],
            "ResourceType": call.params.text("ResourceType"),
            "TagKey": key,
            "TagValue": value,
        }
        for doc in docs
        for key, value in doc["tags"].items()
    ]
    if product == "ram":  # which alone answers with a plain list, of names
        for row in rows:
            row["ResourceName"] = row.pop("ResourceId")
    return {"TagResources": rows if product == "ram" else {"TagResource": rows}, "NextToken": ""}


def _register(product: str, id_name: str, extra_keys: str = "") -> None:
    resources = f"RegionId ResourceType! {id_name}.N"

    @write(product, "TagResources", f"{resources}! Tag.N.{{Key Value}} ClientToken")
    def tag_resources(call: Call) -> dict[str, Any]:
        """Give resources tags."""
        return add_tags(call, _kind(call, product), call.params.texts(id_name), call.params.tags())

    @write(product, "UntagResources", f"{resources}! TagKey.N {extra_keys} All ClientToken")
    def untag_resources(call: Call) -> dict[str, Any]:
        """Take tags away."""
        return remove_tags(
            call,
            _kind(call, product),
            call.params.texts(id_name),
            [*call.params.texts("TagKey"), *call.params.texts("TagKeys")],
            call.params.flag("All"),
        )

    @read(product, "ListTagResources", f"{resources} Tag.N.{{Key Value}} NextToken MaxResults PageSize")
    def list_tag_resources(call: Call) -> dict[str, Any]:
        """Tags of resources."""
        return list_tags(call, _kind(call, product), call.params.texts(id_name), call.params.tags(), product)


_register("ecs", "ResourceId")
_register("vpc", "ResourceId")
_register("nas", "ResourceId")
_register("ram", "ResourceNames", "TagKeys.N")  # the provider sends both spellings


@read(
    "ecs",
    "DescribeTags",
    "RegionId ResourceType ResourceId Tag.N.{Key Value} Category PageNumber PageSize",
)
def describe_tags(call: Call) -> dict[str, Any]:
    """Tags of one resource, or all tags of a type of resources (the older form of ListTagResources)."""
    params = call.params
    kind = _kind(call, "ecs")
    resource_id = params.text("ResourceId")
    if resource_id:
        doc = call.store.get(kind, _key(call, kind, resource_id))
        docs = [doc] if doc else []
    else:
        docs = call.store.find(kind, {f"tag:{key}": value or ANY for key, value in params.tags().items()}, limit=1000)
    counts: dict[tuple[str, str], int] = {}
    for item in docs:
        for pair in item["tags"].items():
            counts[pair] = counts.get(pair, 0) + 1
    rows = [
        {"TagKey": key, "TagValue": value, "ResourceTypeCount": {_COUNTED[kind]: count}}
        for (key, value), count in counts.items()
    ]
    size, number = params.number("PageSize", 50, 1, 100), params.number("PageNumber", 1, 1)
    return {
        "TotalCount": len(rows),
        "PageNumber": number,
        "PageSize": size,
        "Tags": {"Tag": rows[(number - 1) * size : number * size]},
    }


# -- the tag product itself: resources by ARN --------------------------------------------------------------------


def _by_arn(call: Call, arn: str) -> tuple[str, str]:
    """Kind and id of `acs:ecs:REGION:ACCOUNT:instance/i-...`."""
    parts = arn.split(":", 4)
    kind_name, _, resource_id = parts[-1].partition("/")
    kind = KINDS.get(parts[1] if len(parts) == 5 else "", {}).get(kind_name.lower())
    if kind is None or not resource_id:
        raise ApiError(400, "InvalidResourceARN", f"The specified ResourceARN {arn} is not valid.")
    return kind, resource_id


@write("tag", "TagResources", "RegionId ResourceARN.N! Tags!")
def tag_by_arn(call: Call) -> dict[str, Any]:
    """Give resources tags by their ARN."""
    tags = _json_tags(call)
    for arn in call.params.texts("ResourceARN"):
        kind, resource_id = _by_arn(call, arn)
        add_tags(call, kind, [resource_id], tags)
    return {"FailedResources": {"FailedResource": []}}


@write("tag", "UntagResources", "RegionId ResourceARN.N! TagKey.N!")
def untag_by_arn(call: Call) -> dict[str, Any]:
    """Take tags away by ARN."""
    for arn in call.params.texts("ResourceARN"):
        kind, resource_id = _by_arn(call, arn)
        remove_tags(call, kind, [resource_id], call.params.texts("TagKey"), False)
    return {"FailedResources": {"FailedResource": []}}


@read("tag", "ListTagResources", "RegionId ResourceARN.N! PageSize NextToken Category")
def list_by_arn(call: Call) -> dict[str, Any]:
    """Tags of resources by ARN."""
    rows = []
    for arn in call.params.texts("ResourceARN"):
        kind, resource_id = _by_arn(call, arn)
        doc = call.store.get(kind, _key(call, kind, resource_id))
        tags = doc["tags"] if doc else {}
        rows.append(
            {
                "ResourceARN": arn,
                "Tags": [{"Key": key, "Value": value, "Category": "Custom"} for key, value in tags.items()],
            }
        )
    return {"TagResources": rows, "NextToken": ""}


def _json_tags(call: Call) -> dict[str, str]:
    try:
        tags = json.loads(call.params.require("Tags"))
    except ValueError:
        raise invalid("Tags", "It is a JSON object.") from None
    if not isinstance(tags, dict):
        raise invalid("Tags", "It is a JSON object.")
    return {str(key): str(value) for key, value in tags.items()}
