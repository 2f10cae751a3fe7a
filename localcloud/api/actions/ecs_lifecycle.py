"""Starting, stopping, changing and deleting instances."""

from __future__ import annotations

from typing import Any

from localcloud.api.actions import instance_ops
from localcloud.api.actions.ecs_instances import checked_user_data, need_instance, release_time
from localcloud.api.actions.ecs_security_groups import need_groups, set_groups
from localcloud.api.call import Call
from localcloud.api.errors import ApiError, not_found
from localcloud.api.registry import write
from localcloud.api.store import Doc


def _batch(call: Call) -> list[Doc]:
    wanted = call.params.texts("InstanceId")
    if len(wanted) > 100:
        raise ApiError(403, "InvalidParameter.TooManyInstanceIds", "Instance ids cannot be more than 100.")
    return [need_instance(call, item) for item in dict.fromkeys(wanted)]


def _responses(docs: list[Doc], before: dict[str, str]) -> dict[str, Any]:
    return {
        "InstanceResponses": {
            "InstanceResponse": [
                {
                    "InstanceId": doc["id"],
                    "PreviousStatus": before[doc["id"]],
                    "CurrentStatus": doc["status"],
                    "Code": "200",
                    "Message": "success",
                }
                for doc in docs
            ]
        }
    }


def _wrong_status() -> ApiError:
    return ApiError(
        403, "IncorrectInstanceStatus", "The current status of the resource does not support this operation."
    )


def _delete(call: Call, docs: list[Doc], *, force: bool) -> None:
    expired_too = call.params.flag("TerminateSubscription")
    for doc in docs:
        if doc["deletion_protection"]:
            raise ApiError(
                403, "InvalidOperation.DeletionProtection", "The operation is not allowed due to deletion protection."
            )
        if doc["charge"] == "prepaid" and not (expired_too and doc["expires"] <= call.now):
            raise ApiError(403, "ChargeTypeViolation", "A subscription instance cannot be released before it expires.")
        if doc["status"] == "Pending" and not call.cloud.knobs.delete_while_pending:
            raise ApiError(
                403, "IncorrectInstanceStatus.Initializing", "The specified instance is being initialized; try later."
            )
        if doc["status"] != "Stopped" and not force:
            raise _wrong_status()
    for doc in docs:
        instance_ops.release(call, doc)


@write("ecs", "DeleteInstances", "RegionId InstanceId.N! Force ForceStop ClientToken DryRun TerminateSubscription")
def delete_instances(call: Call) -> dict[str, Any]:
    """Release 1 to 100 instances, all or none; running ones need Force."""
    _delete(call, _batch(call), force=call.params.flag("Force"))
    return {}


@write("ecs", "DeleteInstance", "RegionId InstanceId! Force ForceStop DryRun TerminateSubscription")
def delete_instance(call: Call) -> dict[str, Any]:
    """Release one instance."""
    _delete(call, [need_instance(call, call.params.require("InstanceId"))], force=call.params.flag("Force"))
    return {}


def _start(call: Call, docs: list[Doc]) -> dict[str, Any]:
    before = {doc["id"]: doc["status"] for doc in docs}
    if any(doc["status"] not in ("Stopped", "Stopping") for doc in docs):
        raise _wrong_status()
    for doc in docs:
        instance_ops.start(call, doc, "Starting")
    return _responses(docs, before)


def _stop(call: Call, docs: list[Doc]) -> dict[str, Any]:
    params = call.params
    before = {doc["id"]: doc["status"] for doc in docs}
    if any(doc["status"] not in ("Running", "Starting", "Stopped") for doc in docs):
        raise _wrong_status()
    mode = params.choice("StoppedMode", ("StopCharging", "KeepCharging"), "KeepCharging")
    for doc in docs:
        if doc["status"] != "Stopped":
            instance_ops.stop(call, doc, force=params.flag("ForceStop"), mode=mode)
    return _responses(docs, before)


def _reboot(call: Call, docs: list[Doc]) -> dict[str, Any]:
    before = {doc["id"]: doc["status"] for doc in docs}
    if any(doc["status"] != "Running" for doc in docs):
        raise _wrong_status()
    for doc in docs:
        instance_ops.reboot(call, doc, force=call.params.flag("ForceStop") or call.params.flag("ForceReboot"))
    return _responses(docs, before)


@write("ecs", "StartInstances", "RegionId InstanceId.N! BatchOptimization DryRun")
def start_instances(call: Call) -> dict[str, Any]:
    """Start stopped instances."""
    return _start(call, _batch(call))


@write("ecs", "StartInstance", "RegionId InstanceId! SourceRegionId InitLocalDisk DryRun")
def start_instance(call: Call) -> dict[str, Any]:
    """Start a stopped instance."""
    _start(call, [need_instance(call, call.params.require("InstanceId"))])
    return {}


@write("ecs", "StopInstances", "RegionId InstanceId.N! StoppedMode ForceStop BatchOptimization DryRun")
def stop_instances(call: Call) -> dict[str, Any]:
    """Stop running instances."""
    return _stop(call, _batch(call))


@write("ecs", "StopInstance", "RegionId InstanceId! StoppedMode ForceStop ConfirmStop Hibernate DryRun")
def stop_instance(call: Call) -> dict[str, Any]:
    """Stop a running instance."""
    _stop(call, [need_instance(call, call.params.require("InstanceId"))])
    return {}


@write("ecs", "RebootInstances", "RegionId InstanceId.N! ForceReboot BatchOptimization DryRun")
def reboot_instances(call: Call) -> dict[str, Any]:
    """Reboot running instances."""
    return _reboot(call, _batch(call))


@write("ecs", "RebootInstance", "RegionId InstanceId! ForceStop DryRun")
def reboot_instance(call: Call) -> dict[str, Any]:
    """Reboot a running instance."""
    _reboot(call, [need_instance(call, call.params.require("InstanceId"))])
    return {}


@write("ecs", "ModifyInstanceAutoReleaseTime", "RegionId InstanceId! AutoReleaseTime")
def modify_auto_release(call: Call) -> dict[str, Any]:
    """Set the time at which the cloud releases the instance; none given clears it."""
    doc = need_instance(call, call.params.require("InstanceId"))
    if doc["charge"] == "prepaid":
        raise ApiError(403, "ChargeTypeViolation", "Subscription instances have no release time.")
    at = release_time(call, call.params)
    doc["auto_release"] = at
    call.store.update("instance", doc)
    if at is None:
        call.store.drop_timer("instance", doc["id"], "auto_release")
    else:
        call.store.set_timer("instance", doc["id"], "auto_release", at)
    return {}


@write(
    "ecs",
    "ModifyInstanceAttribute",
    "RegionId InstanceId! InstanceName Description HostName UserData DeletionProtection SecurityGroupIds.N "
    "CreditSpecification Recyclable NetworkInterfaceQueueNumber EnableJumboFrame",
)
def modify_instance_attribute(call: Call) -> dict[str, Any]:
    """Change names, user data, protection and security groups."""
    params = call.params
    doc = need_instance(call, params.require("InstanceId"))
    for name, key in (("InstanceName", "name"), ("HostName", "hostname")):
        if name in params:
            doc[key] = params.text(name)
    if (description := params.optional("Description")) is not None:
        doc["description"] = description
    if "UserData" in params:
        doc["user_data"] = call.store.keep_text(checked_user_data(params))
    doc["deletion_protection"] = params.flag("DeletionProtection", doc["deletion_protection"])
    doc["credit"] = params.text("CreditSpecification", doc["credit"])
    doc["jumbo"] = params.flag("EnableJumboFrame", doc["jumbo"])
    call.store.update("instance", doc)
    if groups := params.texts("SecurityGroupIds"):
        eni = call.store.need("eni", doc["eni_id"], not_found("InvalidEniId.NotFound", "NetworkInterfaceId"))
        set_groups(call, eni, need_groups(call, groups, doc["vpc_id"]))
    return {}


@write(
    "ecs",
    "ModifyInstanceMetadataOptions",
    "RegionId InstanceId! HttpEndpoint! HttpTokens HttpPutResponseHopLimit",
)
def modify_metadata_options(call: Call) -> dict[str, Any]:
    """Change how the metadata service answers."""
    params = call.params
    doc = need_instance(call, params.require("InstanceId"))
    doc["http_endpoint"] = params.choice("HttpEndpoint", ("enabled", "disabled"))
    doc["http_tokens"] = params.choice("HttpTokens", ("optional", "required"), doc["http_tokens"])
    doc["hop_limit"] = params.number("HttpPutResponseHopLimit", doc["hop_limit"], 1, 64)
    call.store.update("instance", doc)
    return {}


@write("ecs", "ModifyInstanceSpec", "RegionId InstanceId! InstanceType! ClientToken AllowMigrateAcrossZone AsyncType")
def modify_instance_spec(call: Call) -> dict[str, Any]:
    """Change the type of a stopped pay-as-you-go instance."""
    doc = need_instance(call, call.params.require("InstanceId"))
    if doc["status"] != "Stopped":
        raise _wrong_status()
    name = call.params.require("InstanceType")
    kind = call.cloud.offers.instance_type(name)
    charge = doc["stock_key"].rpartition("|")[2]
    price = call.cloud.offers.price_hour(
        name, call.region, call.cloud.knobs.spot_price_ratio, "spot" if charge == "spot" else "payg"
    )
    doc.update(
        instance_type=name,
        family=kind.family,
        vcpus=kind.vcpus,
        memory_mib=int(kind.memory_gib * 1024),
        cores=kind.physical_cores,
        threads_per_core=kind.threads_per_core,
        stock_key=f"{doc['zone']}|{name}|{charge}",
        price_hour=str(price),
    )
    call.store.update("instance", doc)
    return {}
