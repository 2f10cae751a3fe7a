"""What a cluster may cost, what is expected to run, and what the account may use."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hpc.spec.base import SpecModel, Whole
from hpc.spec.units import Money


class BudgetSpec(SpecModel):
    """Caps. A stack whose worst case is above one of them is refused."""

    max_hourly: Money | None = None
    """Highest price of an hour with every pool at its maximum."""

    expected_monthly: Money | None = None
    """Highest price of a month with the usage of `usage`."""

    currency: Literal["CNY", "USD"] = "CNY"
    """Currency of the caps."""

    max_nodes: Annotated[Whole, Field(ge=0)] | None = None
    """Most compute nodes in all pools together."""

    max_vcpus: Annotated[Whole, Field(ge=0)] | None = None
    """Most vCPUs of compute nodes in all pools together."""


class UsageSpec(SpecModel):
    """Expected use of one pool in a month."""

    node_hours_per_month: Annotated[float, Field(strict=True, ge=0, le=10_000 * 744)] = 0
    """Sum over all nodes of the hours they run in a month."""

    spot_share: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    """Share of the node hours that run as spot; 1 for `spot` and 0.7 for `spot-then-payg` pools unless given."""


class QuotaSpec(SpecModel):
    """Quota of the account in the region, in vCPUs, as Quota Center shows it; not checked where not given."""

    payg_vcpus: Annotated[Whole, Field(ge=0)] | None = None
    """vCPUs of pay-as-you-go instances."""

    spot_vcpus: Annotated[Whole, Field(ge=0)] | None = None
    """vCPUs of spot instances."""
