"""How amounts and names are written for people; shared by the renderers."""

from __future__ import annotations

from decimal import Decimal

from hpc.cost.model import Item, ScopeKind

ITEM_TITLES = {
    Item.COMPUTE: "Compute",
    Item.SYSTEM_DISK: "System disks",
    Item.NAS: "NAS",
    Item.EIP: "Elastic IP",
    Item.TRAFFIC: "Traffic",
    Item.NAT: "NAT gateway",
    Item.MONITORING: "Monitoring",
}

UNKNOWN = "unknown"


def money(value: Decimal | None) -> str:
    """An amount with two decimals and thousands: `1,436.91`; below a cent with four; `unknown` where it is None."""
    if value is None:
        return UNKNOWN
    if value and abs(value) < Decimal("0.01"):
        return f"{value:,.4f}"
    return f"{value:,.2f}"


def signed(value: Decimal | None) -> str:
    """A difference with its sign; `0` where there is none."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    return ("+" if value > 0 else "-") + money(abs(value))


def percent(value: Decimal | None) -> str:
    """A share as percent: `82 %`."""
    return UNKNOWN if value is None else f"{value * 100:.0f} %"


def scope_title(scope: str, kind: ScopeKind) -> str:
    """Name of a pool or fixed part: `pool mpi`, `login`."""
    return f"pool {scope}" if kind is ScopeKind.POOL else scope
