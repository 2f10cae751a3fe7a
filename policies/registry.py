"""All rules, in the order of their codes."""

from __future__ import annotations

from collections.abc import Mapping

from policies.model import Rule
from policies.rules import access, coverage, interconnect, life, money, network, storage

#: All rules, in the order of their codes.
RULES: tuple[Rule, ...] = (
    *interconnect.RULES,
    *network.RULES,
    *access.RULES,
    *storage.RULES,
    *life.RULES,
    *money.RULES,
    *coverage.RULES,
)

#: Rules by name.
BY_NAME: Mapping[str, Rule] = {rule.name: rule for rule in RULES}

#: Group of each rule for people: the module that it is written in.
GROUPS: Mapping[str, tuple[Rule, ...]] = {
    "Elastic RDMA": interconnect.RULES,
    "Network": network.RULES,
    "Access": access.RULES,
    "Storage": storage.RULES,
    "Life of nodes": life.RULES,
    "Money and size": money.RULES,
    "Coverage": coverage.RULES,
}
