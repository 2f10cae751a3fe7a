"""Names of resources are what ties state to the program: a lost name is a deleted resource."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from registering import STACKS, Run, registered, stack_values

KNOWN = Path(__file__).with_name("known_names.json")


def names(run: Run) -> list[str]:
    """Type and name of each resource, parents in front of the type as in its URN."""
    return sorted(f"{resource.urn.split('::')[2]}::{resource.name}" for resource in run.resources)


def lost(known: list[str], run: Run) -> list[str]:
    """Names that are gone and that no resource carries as an alias."""
    aliases = {alias for resource in run.resources for alias in resource.aliases}
    there = set(names(run))
    # An alias is either a whole URN or `type::name`, where an empty part means "as now".
    return [
        name
        for name in known
        if name not in there
        and not any(alias.endswith(name) for alias in aliases)
        and f"{name.split('::')[0].split('$')[-1]}::{name.split('::')[1]}" not in aliases
        and f"::{name.split('::')[1]}" not in aliases
    ]


def test_no_resource_lost_its_name_without_an_alias() -> None:
    """After a rename: give the resource `aliases=[pulumi.Alias(name=...)]`, then write the file again (see below)."""
    known = json.loads(KNOWN.read_text())
    assert set(known) == set(STACKS)
    for stack in STACKS:
        assert lost(known[stack], registered(stack_values(stack))) == [], stack


def test_new_names_are_written_down() -> None:
    """`python tests/components/test_components_names.py` writes the file."""
    known = json.loads(KNOWN.read_text())
    for stack in STACKS:
        assert set(names(registered(stack_values(stack)))) <= set(known[stack])


def test_a_rename_is_found_and_an_alias_mends_it() -> None:
    before = registered(stack_values("dev"))
    known = names(before)
    old = before.named("dev-network-vpc")
    renamed = dataclasses.replace(old, name="dev-network-net", urn=old.urn.replace("-vpc", "-net"))
    after = Run()
    after.recording.resources = [renamed if resource is old else resource for resource in before.resources]
    assert lost(known, after) == [
        "hpc:cluster:Cluster$hpc:network:Network$alicloud:vpc/network:Network::dev-network-vpc"
    ]
    mended = dataclasses.replace(renamed, aliases=("::dev-network-vpc",))
    after.recording.resources = [mended if resource is renamed else resource for resource in after.resources]
    assert lost(known, after) == []


if __name__ == "__main__":
    KNOWN.write_text(json.dumps({stack: names(registered(stack_values(stack))) for stack in STACKS}, indent=1) + "\n")
