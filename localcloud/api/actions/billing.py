"""Billing calls that clients make on their way to something else."""

from __future__ import annotations

from typing import Any

from localcloud.api.call import Call
from localcloud.api.errors import ApiError
from localcloud.api.registry import read


def _envelope(data: Any) -> dict[str, Any]:
    return {"Code": "Success", "Message": "Successful!", "Success": True, "Data": data}


@read(
    "bss",
    "QueryAvailableInstances",
    "Region ProductCode ProductType SubscriptionType InstanceIDs EndTimeStart EndTimeEnd RenewStatus CreateTimeStart "
    "CreateTimeEnd PageNum PageSize",
)
def query_available_instances(call: Call) -> dict[str, Any]:
    """Subscriptions of the account: the subscription instances of the local cloud."""
    items = [
        {
            "InstanceID": doc["id"],
            "ProductCode": "ecs",
            "SubscriptionType": "Subscription",
            "Region": doc["region"],
            "Status": "Normal",
            "RenewStatus": "AutoRenewal" if doc["auto_renew"] else "ManualRenewal",
            "OwnerId": int(call.cloud.account_id),
        }
        for doc in call.store.find("instance")
        if doc["charge"] == "prepaid"
    ]
    return _envelope({"TotalCount": len(items), "PageNum": 1, "PageSize": 20, "InstanceList": items})


@read("bss", "QueryAccountBalance", "")
def query_account_balance(call: Call) -> dict[str, Any]:
    """Balance of the account: nobody pays here."""
    return _envelope(
        {"AvailableAmount": "0.00", "Currency": "CNY", "CreditAmount": "0.00", "MybankCreditAmount": "0.00"}
    )


@read(
    "bss",
    "GetPayAsYouGoPrice",
    "ProductCode! ProductType SubscriptionType Region ModuleList.N.{ModuleCode Config PriceType}",
)
def get_payg_price(call: Call) -> dict[str, Any]:
    """Price of modules. The codes of the real service are not public, so only ECS instance types are priced."""
    params = call.params
    if params.require("ProductCode").lower() != "ecs":
        raise ApiError(400, "InvalidParameter", "This cloud prices ECS instance types only.")
    details = []
    for module in params.structs("ModuleList"):
        settings = dict(part.split(":", 1) for part in module.text("Config").split(",") if ":" in part)
        name = settings.get("InstanceType", "")
        price = call.cloud.offers.price_hour(name, call.region, call.cloud.knobs.spot_price_ratio, "payg")
        details.append(
            {
                "ModuleCode": module.text("ModuleCode"),
                "OriginalCost": float(price),
                "CostAfterDiscount": float(price),
                "InvoiceDiscount": 0.0,
                "UnitPrice": float(price),
            }
        )
    return _envelope({"Currency": "CNY", "ModuleDetails": {"ModuleDetail": details}, "PromotionDetails": {}})
