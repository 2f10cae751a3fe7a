"""What a cluster costs: per hour and month, by pool and item, against the caps. Pure; all money is Decimal."""

from hpc.cost.caps import check_caps
from hpc.cost.diff import EstimateDiff, diff
from hpc.cost.estimate import estimate
from hpc.cost.model import HOURS_PER_MONTH, Amounts, Estimate, Item, Line, ScopeKind
from hpc.cost.nodes import node_hour

__all__ = [
    "HOURS_PER_MONTH",
    "Amounts",
    "Estimate",
    "EstimateDiff",
    "Item",
    "Line",
    "ScopeKind",
    "check_caps",
    "diff",
    "estimate",
    "node_hour",
]
