from __future__ import annotations

from ipaddress import ip_network

import pytest
from registering import STACKS, registered, small, stack_values

EXTREME = {"mount": "/scratch", "kind": "extreme", "capacity_gib": 500, "zone": "cn-hangzhou-k"}


def test_general_and_extreme_file_systems_as_the_provider_wants_them() -> None:
    done = registered(small(storage=[{"mount": "/home"}, EXTREME]))
    home, scratch = (done.named(f"c-storage-{name}").inputs for name in ("home", "scratch"))
    assert (home["fileSystemType"], home["storageType"], home["protocolType"]) == ("standard", "Performance", "NFS")
    assert "capacity" not in home
    assert (scratch["fileSystemType"], scratch["storageType"]) == ("extreme", "standard")
    assert (scratch["capacity"], scratch["zoneId"]) == (500, "cn-hangzhou-k")
    for inputs in (home, scratch):
        assert not {"vpcId", "vswitchId"} & inputs.keys()  # the provider would replace the file system for ever
        assert inputs["encryptType"] == 1


def test_mount_targets_are_in_the_zone_of_the_file_system_and_in_the_right_access_group() -> None:
    done = registered(small(storage=[{"mount": "/home"}, EXTREME]))
    home, scratch = (done.named(f"c-storage-{name}-mount-target").inputs for name in ("home", "scratch"))
    assert home["vswitchId"] == "c-network-vswitch-cn-hangzhou-j-id"
    assert scratch["vswitchId"] == "c-network-vswitch-cn-hangzhou-k-id"
    assert (home["accessGroupName"], scratch["accessGroupName"]) == ("hpc-c-general", "hpc-c-extreme")
    types = {g.inputs["accessGroupName"]: g.inputs["fileSystemType"] for g in done.of(":AccessGroup")}
    assert types == {"hpc-c-general": "standard", "hpc-c-extreme": "extreme"}
    for rule in done.of(":AccessRule"):
        assert rule.inputs["fileSystemType"] == types[rule.inputs["accessGroupName"]]


@pytest.mark.parametrize("name", STACKS)
def test_only_the_clusters_own_vswitches_may_mount(name: str) -> None:
    done = registered(stack_values(name))
    own = {switch.inputs["cidrBlock"] for switch in done.of(":Switch")}
    groups = len(done.of(":AccessGroup"))
    assert sorted(r.inputs["sourceCidrIp"] for r in done.of(":AccessRule")) == sorted(list(own) * groups)
    assert all(ip_network(cidr).is_private for cidr in own)


def test_an_existing_file_system_is_mounted_and_not_made() -> None:
    done = registered(small(storage=[{"mount": "/home"}, {"mount": "/data", "file_system_id": "0123abc456"}]))
    assert {fs.name for fs in done.of(":FileSystem")} == {"c-storage-home"}
    assert done.named("c-storage-data-mount-target").inputs["fileSystemId"] == "0123abc456"


def test_mount_points_that_look_alike_have_different_names() -> None:
    storage = [{"mount": mount} for mount in ("/a/b", "/a-b", "/a.b", "/a_b", "/a--b")]
    done = registered(small(storage=storage))
    assert len({fs.urn for fs in done.of(":FileSystem")}) == len(storage)


def test_mount_targets_are_deleted_even_where_the_file_system_is_kept() -> None:
    # A vSwitch cannot be deleted while a mount target is in it.
    for target in registered(small()).of(":MountTarget"):
        assert not target.deleted_with
        assert not target.retain_on_delete


def test_outputs_say_what_is_mounted_from_where() -> None:
    done = registered(small(storage=[{"mount": "/home"}, EXTREME]))
    assert done.recording.outputs["mounts"] == {
        "/home": "c-storage-home-mount-target.cn-hangzhou.nas.aliyuncs.com:/",
        "/scratch": "c-storage-scratch-mount-target.cn-hangzhou.nas.aliyuncs.com:/share",
    }
