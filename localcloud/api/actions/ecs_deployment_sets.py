"""Deployment sets: how instances are spread over, or kept close in, the data centre."""

from __future__ import annotations

from typing import Any

from localcloud.api import ids
from localcloud.api.call import Call
from localcloud.api.clock import iso_seconds
from localcloud.api.errors import ApiError, not_found, quota
from localcloud.api.registry import read, write
from localcloud.api.store import Doc


def need_deployment_set(call: Call, set_id: str) -> Doc:
    """The deployment set in the region of the request, or the documented error."""
    doc = call.store.get("deployment_set", set_id)
    if doc is None or doc["region"] != call.region:
        raise not_found("DeploymentSet.NotFound", "DeploymentSet")
    return doc


@write(
    "ecs",
    "CreateDeploymentSet",
    "RegionId DeploymentSetName Description Strategy Domain Granularity GroupCount OnUnableToRedeployFailedInstance "
    "Affinity ClientToken",
)
def create_deployment_set(call: Call) -> dict[str, Any]:
    """Make a deployment set."""
    params = call.params
    if call.store.count("deployment_set", {"region": call.region}) >= call.cloud.knobs.quotas.deployment_sets:
        raise quota("QuotaExceed.DeploymentSet", "The maximum number of deployment sets is reached.")
    doc = {
        "id": ids.resource_id("ds"),
        "region": call.region,
        "name": params.text("DeploymentSetName"),
        "description": params.text("Description"),
        "strategy": params.choice("Strategy", ("Availability", "AvailabilityGroup", "LowLatency"), "Availability"),
        "domain": params.text("Domain", "Default"),
        "granularity": params.text("Granularity", "Host"),
        "group_count": params.number("GroupCount", 3, 1, 7),
        "created": call.now,
        "tags": {},
    }
    call.store.insert("deployment_set", doc)
    return {"DeploymentSetId": doc["id"]}


@read(
    "ecs",
    "DescribeDeploymentSets",
    "RegionId DeploymentSetIds DeploymentSetName Strategy Domain Granularity NetworkType PageNumber PageSize",
)
def describe_deployment_sets(call: Call) -> dict[str, Any]:
    """Deployment sets with the instances in them."""
    docs, page = call.listing(
        "deployment_set",
        {"region": call.region},
        ids=call.params.json_texts("DeploymentSetIds") or None,
        max_size=50,
    )
    views = []
    for doc in docs:
        members = [item["id"] for item in call.store.find("instance", {"deployment_set_id": doc["id"]})]
        views.append(
            {
                "DeploymentSetId": doc["id"],
                "DeploymentSetName": doc["name"],
                "DeploymentSetDescription": doc["description"],
                "Strategy": doc["strategy"],
                "DeploymentStrategy": doc["strategy"],
                "Domain": doc["domain"],
                "Granularity": doc["granularity"],
                "GroupCount": doc["group_count"],
                "CreationTime": iso_seconds(doc["created"]),
                "InstanceAmount": len(members),
                "InstanceIds": {"InstanceId": members},
                "Capacities": {"Capacity": []},
            }
        )
    return {"RegionId": call.region, "DeploymentSets": {"DeploymentSet": views}, **page}


@write("ecs", "ModifyDeploymentSetAttribute", "RegionId DeploymentSetId! DeploymentSetName Description")
def modify_deployment_set(call: Call) -> dict[str, Any]:
    """Change name and description."""
    doc = need_deployment_set(call, call.params.require("DeploymentSetId"))
    doc["name"] = call.params.text("DeploymentSetName", doc["name"])
    doc["description"] = call.params.text("Description", doc["description"])
    call.store.update("deployment_set", doc)
    return {}


@write("ecs", "DeleteDeploymentSet", "RegionId DeploymentSetId!")
def delete_deployment_set(call: Call) -> dict[str, Any]:
    """Delete an empty deployment set."""
    doc = need_deployment_set(call, call.params.require("DeploymentSetId"))
    if call.store.count("instance", {"deployment_set_id": doc["id"]}):
        raise ApiError(403, "DependencyViolation.DeploymentSet", "The deployment set is in use.")
    call.store.delete("deployment_set", doc["id"])
    return {}
