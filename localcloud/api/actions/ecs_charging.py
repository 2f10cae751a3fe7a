"""How instances are paid for: subscription or pay-as-you-go, from one to the other, renewal."""

from __future__ import annotations

from typing import Any

from localcloud.api import ids
from localcloud.api.actions.ecs_instances import need_instance, subscription_seconds
from localcloud.api.call import Call
from localcloud.api.errors import ApiError, invalid
from localcloud.api.registry import read, write
from localcloud.api.store import Doc

_MAX_IDS = 20


def _instances(call: Call) -> list[Doc]:
    """The instances of the request; an id that is none is a bad parameter here, not one that is not found."""
    wanted = list(dict.fromkeys(call.params.json_texts("InstanceIds")))
    if len(wanted) > _MAX_IDS:
        raise ApiError(400, "InstancesIdQuotaExceed", "The maximum number of Instances is exceeded.")
    docs = [doc for item in wanted if (doc := call.store.get("instance", item)) and doc["region"] == call.region]
    if not wanted or len(docs) != len(wanted):
        raise ApiError(400, "InvalidParameter.InstanceIds", "The specified InstanceIds are invalid.")
    return docs


def _check(doc: Doc, kind: str) -> None:
    """Refuse what cannot change to `kind` (`PrePaid` or `PostPaid`)."""
    if doc["charge"] == "spot" or doc["charge_type"] == kind:
        raise ApiError(
            400,
            "InvalidInstanceChargeType.ValueNotSupported",
            "A spot instance keeps its charge type."
            if doc["charge"] == "spot"
            else f"The charge type of the instance is {kind} already.",
        )
    if doc["status"] not in ("Running", "Stopped"):
        raise ApiError(
            400, "InvalidStatus.ValueNotSupported", "The instance cannot be modified in the specified status."
        )
    if doc["auto_release"]:
        raise ApiError(400, "ReleaseTimeHaveBeenSet", "The specified instance has been set released time.")


@write(
    "ecs",
    "ModifyInstanceChargeType",
    "RegionId InstanceIds! InstanceChargeType Period PeriodUnit AutoPay DryRun "
    "ClientToken IncludeDataDisks IsDetailFee",
)
def modify_charge_type(call: Call) -> dict[str, Any]:
    """Turn pay-as-you-go instances into subscription ones and back, with their system disks."""
    params = call.params
    kind = params.choice("InstanceChargeType", ("PostPaid", "PrePaid"), "PrePaid")
    prepaid = kind == "PrePaid"
    docs = _instances(call)
    for doc in docs:
        _check(doc, kind)
    expires = call.now + subscription_seconds(params) if prepaid else None
    for doc in docs:
        doc.update(charge_type=kind, charge="prepaid" if prepaid else "payg", expires=expires)
        doc["period_unit"] = params.text("PeriodUnit", "Month") if prepaid else doc["period_unit"]
        if not prepaid:
            doc["auto_renew"] = False
        call.store.update("instance", doc)
        for disk in call.store.find("disk", {"instance_id": doc["id"]}):
            if disk["type"] == "system" or not prepaid or params.flag("IncludeDataDisks"):
                disk.update(charge_type=kind, expires=expires)
                call.store.update("disk", disk)
    answer: dict[str, Any] = {"OrderId": str(int(ids.text(9), 36) % 10**15)} if prepaid else {}
    if params.flag("IsDetailFee"):
        fees = [{"InstanceId": doc["id"], "Fee": "0", "Currency": "CNY"} for doc in docs]
        answer["FeeOfInstances"] = {"FeeOfInstance": fees}
    return answer


@read("ecs", "DescribeInstanceAutoRenewAttribute", "RegionId InstanceId RenewalStatus PageNumber PageSize")
def describe_auto_renew(call: Call) -> dict[str, Any]:
    """Renewal of subscription instances: of those named, or of all."""
    params = call.params
    named = [item for item in params.text("InstanceId").split(",") if item]
    if len(named) > 100:
        raise invalid("InstanceId", "At most 100 ids can be given.")
    if named:
        docs = [need_instance(call, item) for item in named]
    else:
        docs = [doc for doc in call.store.find("instance", {"region": call.region}) if doc["charge"] == "prepaid"]
    wanted = params.choice("RenewalStatus", ("AutoRenewal", "Normal", "NotRenewal"))
    found = [
        {
            "InstanceId": doc["id"],
            "AutoRenewEnabled": doc["auto_renew"],
            "RenewalStatus": _renewal(doc),
            "Duration": doc["auto_renew_period"],
            "PeriodUnit": doc["period_unit"],
        }
        for doc in docs
        if wanted in ("", _renewal(doc))
    ]
    size, number = params.number("PageSize", 10, 1, 100), params.number("PageNumber", 1, 1)
    return {
        "InstanceRenewAttributes": {"InstanceRenewAttribute": found[(number - 1) * size : number * size]},
        "TotalCount": len(found),
        "PageNumber": number,
        "PageSize": size,
    }


def _renewal(doc: Doc) -> str:
    return "AutoRenewal" if doc["auto_renew"] else str(doc.get("renewal", "Normal"))


@write(
    "ecs",
    "ModifyInstanceAutoRenewAttribute",
    "RegionId InstanceId! Duration AutoRenew PeriodUnit RenewalStatus ClientToken",
)
def modify_auto_renew(call: Call) -> dict[str, Any]:
    """Have subscription instances renewed, or not."""
    params = call.params
    named = [item for item in params.require("InstanceId").split(",") if item]
    if len(named) > 100:
        raise invalid("InstanceId", "At most 100 ids can be given.")
    docs = [need_instance(call, item) for item in named]
    if any(doc["charge"] != "prepaid" for doc in docs):
        raise ApiError(403, "ChargeTypeViolation", "The operation is not permitted due to charge type of the instance.")
    status = params.choice("RenewalStatus", ("AutoRenewal", "Normal", "NotRenewal"))
    if not status:
        status = "AutoRenewal" if params.flag("AutoRenew") else "Normal"
    duration = params.number("Duration", 1, 1, 60)
    unit = params.choice("PeriodUnit", ("Week", "Month", "Year"), "Month")
    for doc in docs:
        doc.update(auto_renew=status == "AutoRenewal", renewal=status)
        if status == "AutoRenewal":
            doc.update(auto_renew_period=duration, period_unit=unit)
        call.store.update("instance", doc)
    return {}
