"""What a change of the stack file touches, and what it must not touch."""

from __future__ import annotations

from typing import Any

import pytest
from registering import changed, changes, registered, run, small

from hpc.findings import FindingsError

#: A file system of its own, so that nothing about storage changes with zones.
BASE = small(storage=[{"mount": "/home"}])


def pool(name: str, **updates: Any) -> list[dict[str, Any]]:
    return [{**pool, **(updates if pool["name"] == name else {})} for pool in BASE["pools"]]


def difference(**updates: Any) -> Any:
    return changes(registered(BASE), registered(changed(BASE, **updates)))


def test_the_same_file_gives_the_same_resources() -> None:
    found = changes(registered(BASE), registered(BASE))
    assert (found.created, found.deleted, found.updated, found.bootstrap) == (set(), set(), {}, set())


@pytest.mark.parametrize(
    "update", [{"max": 7}, {"min": 1}, {"idle": "1h"}, {"max_lifetime": "3d"}, {"auto_release": "2h"}]
)
def test_the_size_and_times_of_a_pool_touch_no_resource(update: dict[str, Any]) -> None:
    found = difference(pools=pool("a", **update))
    assert (found.created, found.deleted, found.updated) == (set(), set(), {})
    # The nodes are told: slurm.conf and the elastic daemon's settings are others now.
    assert "c-bootstrap-management-0" in found.bootstrap


@pytest.mark.parametrize(
    ("update", "inputs"),
    [
        ({"charge": "payg"}, {"spotStrategy", "spotDuration"}),
        ({"spot_price_limit": 3}, {"spotStrategy", "spotPriceLimit"}),
        ({"system_disk": {"size_gib": 100}}, {"systemDisk"}),
        ({"image": {"os": "alinux-3", "image_id": "m-baked0001"}}, {"imageId"}),
        ({"tags": {"team": "cfd"}}, {"tags", "templateTags"}),
        ({"instance_types": ["ecs.c8ae.8xlarge"]}, {"instanceType"}),
    ],
)
def test_a_change_of_one_pool_updates_its_template_in_place_and_nothing_else(
    update: dict[str, Any], inputs: set[str]
) -> None:
    found = difference(pools=pool("a", **update))
    # The disk always changes, too: the provider leaves `encrypted` out of an update in which it does not.
    assert found.updated == {"c-pool-a-template": inputs | {"systemDisk"}}
    assert (found.created, found.deleted, found.replaced) == (set(), set(), {})


def test_the_disk_of_a_template_changes_with_its_user_data() -> None:
    found = difference(storage=[{"mount": "/homes"}])
    assert found.updated["c-pool-a-template"] == {"userData", "systemDisk"}


def test_a_further_pool_is_one_template_and_its_component() -> None:
    found = difference(pools=[*BASE["pools"], {"name": "n", "instance_types": ["ecs.c8ae.4xlarge"]}])
    assert found.created == {"c-pool-n", "c-pool-n-template"}
    assert (found.deleted, found.updated) == (set(), {})


def test_a_pool_less_deletes_its_template_only() -> None:
    found = difference(pools=pool("a")[:1])
    assert found.deleted == {"c-pool-b", "c-pool-b-template"}
    assert (found.created, found.updated) == (set(), {})


def test_the_order_of_the_pools_touches_nothing() -> None:
    found = difference(pools=BASE["pools"][::-1])
    assert (found.created, found.deleted, found.updated) == (set(), set(), {})


def test_a_placement_is_a_deployment_set_in_each_zone() -> None:
    found = difference(pools=pool("b", placement="low-latency"))
    assert found.created == {f"c-pool-b-placement-cn-hangzhou-{zone}" for zone in "jk"}
    assert (found.deleted, found.updated) == (set(), {})


def test_a_network_that_may_log_in_is_one_rule_more() -> None:
    found = difference(network={"ssh_from": ["203.0.113.0/24", "198.51.100.0/24"]})
    assert found.created == {"c-security-login-ssh-198.51.100.0-24"}
    assert (found.deleted, found.updated) == (set(), {})


def test_other_mpi_ports_replace_two_rules_and_no_group() -> None:
    found = difference(network={"ssh_from": ["203.0.113.0/24"], "mpi_ports": "40000-40100"})
    assert {name: keys for name, keys in found.replaced.items() if "pool" not in name} == {
        "c-security-members-mpi-tcp": {"portRange"},
        "c-security-members-mpi-udp": {"portRange"},
    }
    assert (found.created, found.deleted) == (set(), set())


def test_a_login_node_more_leaves_the_first_alone() -> None:
    found = difference(login={"count": 2})
    assert found.created == {"c-login-1", "c-login-1-address", "c-login-1-address-binding"}
    assert (found.deleted, found.updated) == (set(), {})


def test_a_backup_makes_a_second_node_and_replaces_nothing() -> None:
    found = difference(management={"backup": True})
    assert "c-management-1" in found.created
    assert (found.deleted, found.replaced) == (set(), {})
    assert found.updated == {"c-management-0": {"securityGroups"}}


def test_another_image_leaves_long_lived_nodes_alone() -> None:
    found = difference(image={"os": "alinux-3", "image_id": "m-baked0001"})
    assert set(found.updated) == {"c-pool-a-template", "c-pool-b-template"}


def test_tags_are_updated_in_place_everywhere() -> None:
    found = difference(tags={"owner": "me"})
    assert (found.created, found.deleted, found.replaced) == (set(), set(), {})
    assert "c-storage-home" in found.updated


def test_protection_is_switched_off_in_place() -> None:
    found = difference(protect=False)
    assert found.updated == {"c-management-0": {"deletionProtection"}}
    assert (found.created, found.deleted, found.replaced) == (set(), set(), {})


CAPPED = [
    {"max_hourly": 1},
    {"expected_monthly": 1},
    {"max_hourly": 0, "currency": "USD"},
]


@pytest.mark.parametrize("budget", CAPPED)
def test_a_broken_cap_is_refused_before_the_first_resource(budget: dict[str, Any]) -> None:
    usage = {"a": {"node_hours_per_month": 100}}
    for preview in (True, False):
        done = run(changed(BASE, budget=budget, usage=usage), preview=preview)
        assert isinstance(done.error, FindingsError)
        assert done.error.exit_code == 1
        assert done.resources == []


def test_what_is_refused_is_refused_with_all_findings() -> None:
    done = run(changed(BASE, budget={"max_hourly": 1, "expected_monthly": 1}, usage={"a": {"node_hours_per_month": 9}}))
    assert isinstance(done.error, FindingsError)
    assert {finding.code for finding in done.error.findings} >= {"HPC601", "HPC602"}


def test_a_network_that_may_log_in_sets_no_node_up_again() -> None:
    assert difference(network={"ssh_from": ["198.51.100.0/24"]}).bootstrap == set()
