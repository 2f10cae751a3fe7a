"""Routes, names, records and processes: the parts that need no host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpc.errors import CannotRunError
from localcloud.contracts import Host
from localcloud.hosts import addresses, image, support, sysctl
from localcloud.hosts.locks import file_lock
from localcloud.hosts.naming import Names
from localcloud.hosts.processes import Process
from localcloud.hosts.records import HostRecord, Records
from localcloud.hosts.routes import Route, name_servers, wanted_routes

HOST = Host("i-1", "node-1", "vpc-a", "vsw-a", "10.16.0.5", "00:16:3e:00:00:05", ("sg-a", "sg-b"), 2, 4096, "m", "d-1")


@pytest.mark.parametrize(
    ("cidr", "gateway"),
    [("10.0.0.0/24", "10.0.0.253"), ("10.16.0.0/20", "10.16.15.253"), ("172.16.0.0/29", "172.16.0.5")],
)
def test_gateway(cidr: str, gateway: str) -> None:
    assert addresses.gateway(cidr) == gateway


def test_all_ranges_of_the_cloud_are_unreachable_and_bound_addresses_are_not() -> None:
    links = {"vpc-a": ("alihpc0a1b20", "169.254.80.2")}
    routes = wanted_routes(["10.16.0.0/20"], {"198.18.0.1": "vpc-a", "198.18.0.2": "vpc-new"}, links, ["192.0.2.1"])
    assert routes == {
        Route("10.16.0.0/20"),
        Route("198.18.0.0/15"),
        *(Route(f"{address}/32") for address in addresses.SERVICES),
        Route("198.18.0.1/32", "alihpc0a1b20", "169.254.80.2"),
        Route("169.254.80.2/32", "alihpc0a1b20"),
    }


def test_range_with_a_name_server_of_the_machine_is_left_alone() -> None:
    routes = wanted_routes(["10.255.0.0/16", "10.16.0.0/20"], {}, {}, ["10.255.255.53", addresses.RESOLVER])
    assert Route("10.255.0.0/16") not in routes
    assert Route(f"{addresses.RESOLVER}/32") not in routes
    assert Route("10.16.0.0/20") in routes


def test_name_servers(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    assert name_servers(file) == ()
    file.write_text("# x\nsearch a\nnameserver 192.0.2.1\nnameserver fd00::1\nnameserver\nnameserver 192.0.2.2\n")
    assert name_servers(file) == ("192.0.2.1", "192.0.2.2")


def test_names_are_ours_and_fit() -> None:
    names = Names.of(Path("/some/where"))
    assert names == Names.of(Path("/some/../some/where"))
    assert names != Names.of(Path("/some/where/else"))
    for interface in (names.uplink(9999), Names.bridge("vsw-" + "x" * 20), Names.port("i-" + "x" * 20)):
        assert len(interface) <= 15  # IFNAMSIZ less one
    for name in (names.uplink(0), names.table, names.cgroup, names.namespace("vpc-a")):
        assert name.startswith("alihpc")


def test_records_survive_and_half_ones_are_dropped(tmp_path: Path) -> None:
    records = Records(tmp_path)
    record = HostRecord(HOST, Process(4242, 1))
    records.write(record)
    (tmp_path / "i-2.json").write_text('{"host": {"instance_id": "i-2"}}')
    (tmp_path / "i-3.json").write_text('{"ho')
    assert Records(tmp_path).all() == (record,)
    records.remove("i-1")
    records.remove("i-1")
    assert records.all() == ()
    assert list(tmp_path.iterdir()) == []


def test_process_is_told_from_another_with_its_id() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        process = Process.of(child.pid)
        assert process is not None
        assert process.alive
        assert not process.wait(0.0)
        imposter = Process(child.pid, process.started + 1)
        assert not imposter.alive
        imposter.kill()
        assert process.alive
        process.kill()
        assert process.wait(10.0)
        assert not process.alive
    assert Process.of(child.pid) is None


def test_lock_is_refused_with_a_reason(tmp_path: Path) -> None:
    with file_lock(tmp_path / "lock"), pytest.raises(CannotRunError, match=r"HPC852.*busy here"):  # noqa: SIM117
        with file_lock(tmp_path / "lock", wait=False, busy="busy here"):
            pass
    with file_lock(tmp_path / "lock", wait=False):
        pass


def test_limits_are_raised_and_never_lowered(tmp_path: Path) -> None:
    low, high = tmp_path / "fs/inotify/max_user_instances", tmp_path / "kernel/pid_max"
    for file, value in ((low, "128"), (high, "99999999")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value)
    sysctl.raise_limits(tmp_path)
    assert (low.read_text(), high.read_text()) == ("8192", "99999999")


def test_image_is_named_by_its_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = image.image_path(tmp_path)
    assert before == image.image_path(tmp_path)
    monkeypatch.setattr(image, "PACKAGES", image.PACKAGES + ",tree")
    assert image.image_path(tmp_path) != before


def test_failed_image_build_leaves_nothing_and_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin/mmdebstrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'E: no such mirror' >&2\nexit 25\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    with pytest.raises(CannotRunError, match=r"HPC860.*no such mirror"):
        image.ensure_image(lambda _: None, cache=tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache/images").iterdir()] == [".lock"]


def test_without_root_there_is_one_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert support.reasons(tmp_path) == ("instance hosts need root",)
    assert support.prepare(tmp_path) == ("instance hosts need root",)
