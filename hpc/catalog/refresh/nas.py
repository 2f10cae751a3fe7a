"""Prices of NAS: the billing API's DescribePricingModule and GetPayAsYouGoPrice.

The module codes of NAS are not documented where this was written, so they are found in the answer of
DescribePricingModule instead of being written down here: the module that sells capacity, with the values of its
attributes that name a storage class. What cannot be placed is reported and keeps its shipped price.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

from hpc.catalog.override import PriceOverride
from hpc.catalog.refresh.clients import Clients, Failures, bss_models, call

#: Storage classes by kind, with the words by which the billing API's values name them.
_CLASSES = {
    "general": {"capacity": ("capacity",), "performance": ("performance",), "premium": ("premium", "advanced")},
    "extreme": {"standard": ("standard",), "advance": ("advance", "advanced")},
}

#: ProductType of the billing API by kind; general NAS has none of its own.
_PRODUCT_TYPE = {"general": None, "extreme": "nas_extreme_post"}

_CAPACITY_WORDS = ("volumesize", "capacity", "storage", "size")

#: CNY per GiB and month that a NAS price lies between; anything else means that the module was misread.
_PLAUSIBLE = (Decimal("0.02"), Decimal(30))

_HOURS_PER_MONTH = 730


def read_nas_prices(clients: Clients, region: str, failures: Failures) -> tuple[PriceOverride, ...]:
    """Price of a GiB-month of each storage class that the billing API can be asked for."""
    if clients.bss is None:
        return ()
    out: list[PriceOverride] = []
    for kind in _CLASSES:
        if failures.hopeless:
            break
        out += _of_kind(clients, region, kind, failures)
    return tuple(out)


def _of_kind(clients: Clients, region: str, kind: str, failures: Failures) -> list[PriceOverride]:
    data = _modules(clients, kind, failures)
    if data is None:
        return []
    modules = [
        module
        for module in ((data.module_list.module or ()) if data.module_list else ())
        if any(word in f"{module.module_code} {module.module_name}".lower() for word in _CAPACITY_WORDS)
    ]
    values = _attribute_values(data)
    out = []
    for name, words in _CLASSES[kind].items():
        config = next(
            ((module, found) for module in modules if (found := _config(module, values, region, words)) is not None),
            None,
        )
        if config is None:
            failures.note("NoModule", f"{kind} {name}", "the billing API lists no module that is surely this class")
            continue
        price = _price(clients, region, kind, name, *config, failures)
        if price is not None:
            out.append(price)
    return out


def _modules(clients: Clients, kind: str, failures: Failures) -> Any | None:
    bss = clients.bss
    assert bss is not None  # noqa: S101 - read_nas_prices has looked
    request = bss_models().DescribePricingModuleRequest(
        product_code="nas", product_type=_PRODUCT_TYPE[kind], subscription_type="PayAsYouGo"
    )
    try:
        body = call(clients, bss.describe_pricing_module, request).body
    except Exception as error:
        failures.add(f"modules of {kind} NAS", error)
        return None
    if not body.success or body.data is None:
        failures.note(body.code or "NoData", f"modules of {kind} NAS", body.message or "the answer is empty")
        return None
    return body.data


def _attribute_values(data: Any) -> dict[str, list[str]]:
    """Values that each attribute can take."""
    attributes = (data.attribute_list.attribute or ()) if data.attribute_list else ()
    return {
        row.code: [value.value for value in ((row.values.attribute_value or ()) if row.values else ())]
        for row in attributes
    }


def _config(module: Any, values: dict[str, list[str]], region: str, words: tuple[str, ...]) -> str | None:
    """The module's configuration for one storage class, or None where it cannot be filled in without guessing."""
    out = []
    named = False
    for attribute in (module.config_list.config_list or ()) if module.config_list else ():
        choices = values.get(attribute, [])
        matching = [choice for choice, word in product(choices, words) if _names(choice, word)]
        if attribute.lower() == "region":
            out.append(f"{attribute}:{region}")
        elif len(set(matching)) == 1:
            out.append(f"{attribute}:{matching[0]}")
            named = True
        elif not choices:
            # An attribute without a list of values is the quantity.
            out.append(f"{attribute}:1")
        elif len(choices) == 1:
            out.append(f"{attribute}:{choices[0]}")
        else:
            return None
    return ",".join(out) if named else None


def _names(value: str, word: str) -> bool:
    """Whether one of the words of a value, such as `nas_performance`, is the word."""
    return word in value.lower().replace("-", "_").split("_")


def _price(
    clients: Clients, region: str, kind: str, name: str, module: Any, config: str, failures: Failures
) -> PriceOverride | None:
    bss = clients.bss
    assert bss is not None  # noqa: S101 - read_nas_prices has looked
    models = bss_models()
    request = models.GetPayAsYouGoPriceRequest(
        product_code="nas",
        product_type=_PRODUCT_TYPE[kind],
        subscription_type="PayAsYouGo",
        region=region,
        module_list=[
            models.GetPayAsYouGoPriceRequestModuleList(
                module_code=module.module_code, config=config, price_type=module.price_type or "Hour"
            )
        ],
    )
    what = f"{kind} {name}"
    try:
        body = call(clients, bss.get_pay_as_you_go_price, request).body
    except Exception as error:
        failures.add(what, error)
        return None
    rows = body.data.module_details.module_detail if body.data and body.data.module_details else None
    if not body.success or not rows or rows[0].original_cost is None:
        failures.note(body.code or "NoPrice", what, body.message or "the answer holds no price")
        return None
    factor = 1 if (module.price_type or "Hour") == "Month" else _HOURS_PER_MONTH
    amount = Decimal(str(rows[0].original_cost)) * factor
    if not _PLAUSIBLE[0] <= amount <= _PLAUSIBLE[1]:
        failures.note("Implausible", what, f"{amount} per GiB-month from module {module.module_code} ({config})")
        return None
    after = rows[0].cost_after_discount
    return PriceOverride(
        item=f"nas/{kind}/{name}",
        charge="payg",
        amount=amount,
        trade_amount=None if after is None else Decimal(str(after)) * factor,
        currency=body.data.currency or "CNY",
        unit="GiB-month",
        source=f"GetPayAsYouGoPrice, module {module.module_code} ({config})",
    )
