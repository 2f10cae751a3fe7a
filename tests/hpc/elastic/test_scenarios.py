"""What happens to a cluster over time: the real daemon, a virtual clock, and models of slurmctld and the cloud."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpc.elastic.steps import Down, Extend, Launch
from tests.hpc.elastic.settings_for_tests import TYPES, ZONES, all_types, all_zones, pool, settings
from tests.hpc.elastic.simulation import Cluster, Killed

J, K = ZONES
FIRST, SECOND = TYPES


class Maker:
    def __init__(self, folder: Path) -> None:
        self.folder, self.made = folder, []

    def __call__(self, *, tuning: dict[str, Any] | None = None, nodes: bool = False, **changes: Any) -> Cluster:
        folder = self.folder / "nodes" if nodes else None
        if folder:
            folder.mkdir()
        cluster = Cluster(settings(pool(**changes), tuning=tuning, nodes_folder=folder), self.folder)
        self.made.append(cluster)
        return cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Maker]:
    maker = Maker(tmp_path)
    yield maker
    for made in maker.made:
        made.close()


@pytest.mark.parametrize("count", [1, 2, 250])
def test_nodes_come_for_a_job_and_go_after_it(cluster: Maker, count: int) -> None:
    cfd = cluster()
    job = cfd.submit(count, seconds=120)
    cfd.run(60)
    assert job.running_since is not None
    assert Counter(i.name for i in cfd.cloud.living.values()) == Counter(f"mpi-{n}" for n in range(1, count + 1))
    cfd.run(400)
    assert job.done and not job.requeued
    assert cfd.cloud.bought == count and not cfd.cloud.living
    assert not cfd.slurm.jobs() and all(node.powered_down for node in cfd.slurm.nodes())
    assert cfd.state.memory().marks == {}


def test_batches_never_cross_a_change_of_digits(cluster: Maker) -> None:
    cfd = cluster()
    cfd.submit(250)
    cfd.run(10)
    assert sorted(count for _, count in cfd.cloud.requests) == [9, 51, 90, 100]


def test_a_sold_out_type_falls_back_over_zone_type_and_charge(cluster: Maker) -> None:
    cfd = cluster(charge="spot-then-payg", types=all_types(), zones=all_zones())
    for zone in ZONES:
        cfd.cloud.stock[FIRST, zone, "spot"] = 0
    cfd.cloud.stock[SECOND, J, "spot"] = 1
    cfd.cloud.stock[SECOND, K, "spot"] = 0
    cfd.cloud.stock[FIRST, J, "payg"] = 0
    jobs = [cfd.submit(1) for _ in range(3)]
    cfd.run(100)
    bought = Counter((i.type, i.zone, i.charge) for i in cfd.cloud.living.values())
    assert bought == {(SECOND, J, "spot"): 1, (FIRST, K, "payg"): 2}
    assert all(job.running_since for job in jobs)
    order = list(dict.fromkeys(key for key, _ in cfd.cloud.requests))
    assert order == [
        (FIRST, J, "spot"), (FIRST, K, "spot"), (SECOND, J, "spot"), (SECOND, K, "spot"), (FIRST, J, "payg"),
        (FIRST, K, "payg"),
    ]  # fmt: skip


def test_a_stock_out_is_told_and_ends_by_itself(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.stock[FIRST, J, "payg"] = 0
    job = cfd.submit(2)
    cfd.run(60)
    node = cfd.state_of("mpi-1")
    assert node.down and "no stock" in node.reason and FIRST in node.reason and J in node.reason
    assert "no stock" in job.comment and not job.nodes
    calls = cfd.cloud.calls
    cfd.run(500)
    assert cfd.cloud.calls == calls, "nobody asks again within the cool-down"
    cfd.cloud.stock.clear()
    cfd.run(900)
    assert job.done
    assert all(node.powered_down and not node.down for node in cfd.slurm.nodes()) or cfd.cloud.living


def test_nodes_that_were_refused_stay_out_of_use_for_the_cool_down(cluster: Maker) -> None:
    cfd = cluster(max=2)
    cfd.cloud.stock[FIRST, J, "payg"] = 0
    job = cfd.submit(1)
    cfd.run(500)
    assert cfd.cloud.calls == 1, "the second node would get the same answer"
    assert job.requeued == 2
    assert {node.name for node in cfd.slurm.nodes() if node.down} == {"mpi-1", "mpi-2"}


def test_quota_makes_no_loop_of_creating_and_deleting(cluster: Maker) -> None:
    cfd = cluster(types=all_types(), zones=all_zones())
    cfd.cloud.quota = 1
    job = cfd.submit(5)
    cfd.run(1800)
    assert not job.done
    assert cfd.cloud.bought == 0 and cfd.cloud.calls <= 4, "quota is not stock: other types are not tried"
    assert "quota" in job.comment and "Quota Center" in job.comment
    cfd.cloud.quota = None
    cfd.run(900)
    assert job.done


def test_part_of_a_quota_is_used_by_jobs_that_fit(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.quota = 4
    large, small = cfd.submit(5), cfd.submit(2)
    cfd.run(200)
    assert small.done or small.running_since
    assert not large.running_since


def test_a_node_that_does_not_register_in_time_comes_back_by_itself(cluster: Maker) -> None:
    cfd = cluster(resume_timeout=120)
    cfd.cloud.broken = {"mpi-1"}
    job = cfd.submit(1)
    cfd.run(140)
    assert (
        "not registered within 120 s" in cfd.state_of("mpi-1").reason or "ResumeTimeout" in cfd.state_of("mpi-1").reason
    )
    cfd.cloud.broken.clear()
    cfd.run(600)
    assert job.done and job.requeued == 1
    assert not cfd.cloud.living
    assert cfd.state_of("mpi-1").powered_down and not cfd.state_of("mpi-1").down


def test_a_node_that_reaches_nothing_tells_why_on_its_console(cluster: Maker) -> None:
    cfd = cluster(resume_timeout=120)
    cfd.cloud.broken = {"mpi-1"}
    cfd.cloud.consoles["mpi-1"] = "Linux\r\nHPC901: nas:/ does not mount on /home: check the access group\r\nlogin:"
    job = cfd.submit(1)
    cfd.run(75)
    assert cfd.state_of("mpi-1").reason == "hpc: HPC901: nas:/ does not mount on /home: check the access group"
    assert not cfd.cloud.living, "the instance goes long before its time is over"
    cfd.cloud.broken.clear()
    cfd.cloud.consoles.clear()
    cfd.run(600)
    assert job.done and job.requeued == 1


def test_consoles_are_read_seldom(cluster: Maker) -> None:
    cfd = cluster(resume_timeout=120, max=40)
    cfd.cloud.broken = {f"mpi-{number}" for number in range(1, 41)}
    cfd.submit(40)
    cfd.run(61)
    assert cfd.cloud.consoles_read <= 5
    cfd.run(110)
    assert cfd.cloud.consoles_read <= 3 * 40


def test_what_slurmctld_gave_up_while_the_daemon_was_away_comes_back(cluster: Maker) -> None:
    cfd = cluster(resume_timeout=120)
    cfd.cloud.broken = {"mpi-1", "mpi-2"}
    job = cfd.submit(2)
    cfd.run(20)
    cfd.watched = False
    cfd.run(150)
    assert cfd.state_of("mpi-1").down and cfd.state_of("mpi-1").powered_down
    cfd.cloud.broken.clear()
    cfd.restart()
    cfd.run(15)
    assert not cfd.cloud.living, "the instances are of no use any more"
    assert cfd.state.memory().failures == {"mpi": 2}, "each failed start is counted once"
    cfd.run(600)
    assert job.done


def test_a_reclaimed_spot_node_requeues_its_job_and_is_replaced(cluster: Maker) -> None:
    cfd = cluster(charge="spot")
    job = cfd.submit(2, seconds=300)
    cfd.run(60)
    assert job.running_since
    cfd.cloud.reclaim("mpi-2")
    cfd.run(20)
    assert job.requeued == 1 and not any(i.reclaimed for i in cfd.cloud.living.values())
    cfd.run(700)
    assert (job.done and cfd.cloud.bought == 3) or cfd.cloud.bought == 4


def test_a_spot_node_reclaimed_before_it_registers_is_replaced(cluster: Maker) -> None:
    cfd = cluster(charge="spot")
    cfd.cloud.boot = 60
    job = cfd.submit(1)
    cfd.run(20)
    cfd.cloud.reclaim("mpi-1")
    cfd.run(200)
    assert job.done or job.running_since
    assert cfd.cloud.bought == 2


def test_a_killed_daemon_buys_nothing_twice(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.kill_after_launch, cfd.cloud.lag = True, 30
    job = cfd.submit(2)
    cfd.run(5)
    assert cfd.cloud.bought == 2
    assert len(cfd.state.unfinished()) == 1
    cfd.cloud.kill_after_launch = False
    cfd.restart()
    assert cfd.state.unfinished() == ()
    cfd.run(120)
    assert cfd.cloud.bought == 2 and job.done


def test_a_daemon_killed_in_the_middle_of_a_large_job_buys_nothing_twice(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.kill_after_launch, cfd.cloud.lag = True, 30
    job = cfd.submit(250)
    cfd.run(5)
    assert 0 < cfd.cloud.bought < 250, "only the batch that goes ahead"
    cfd.cloud.kill_after_launch = False
    cfd.restart()
    cfd.run(200)
    assert cfd.cloud.bought == 250 and job.running_since and not job.requeued


def test_calls_of_before_a_restart_are_repeated_at_once(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.kill_after_launch = True
    for _ in range(400):
        cfd.submit(1)
    cfd.run(5)
    assert len(cfd.state.unfinished()) == 6
    cfd.cloud.kill_after_launch = False
    together, launch = threading.Barrier(6), cfd.cloud.launch

    def waiting(*arguments: Any) -> Any:
        together.wait(20)
        return launch(*arguments)

    cfd.cloud.launch = waiting  # type: ignore[method-assign]
    cfd.restart()
    assert cfd.state.unfinished() == () and cfd.cloud.bought == 400


def test_a_restart_between_launch_and_first_sight_buys_nothing_twice(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.lag = 40
    job = cfd.submit(3)
    cfd.run(10)
    cfd.restart()
    cfd.run(130)
    assert cfd.cloud.bought == 3 and job.done


def test_the_cloud_releases_the_nodes_of_a_dead_daemon(cluster: Maker) -> None:
    cfd = cluster(auto_release=2400)
    cfd.submit(3, seconds=10**6)
    cfd.run(60)
    assert len(cfd.cloud.living) == 3
    cfd.watched = False
    cfd.run(2500, step=20)
    assert not cfd.cloud.living


def test_a_watched_node_outlives_its_release_time_many_times(cluster: Maker) -> None:
    cfd = cluster(auto_release=1800)
    job = cfd.submit(3, seconds=4 * 3600)
    cfd.run(4 * 3600 + 120, step=30)
    assert job.done and not job.requeued and cfd.cloud.bought == 3
    extended = sum(isinstance(step, Extend) for step in cfd.steps)
    assert 4 <= extended <= 20, "pushed forward when half of the time is over, not at every look"


def test_a_missed_describe_is_not_a_dead_node(cluster: Maker) -> None:
    cfd = cluster()
    job = cfd.submit(2, seconds=300)
    cfd.run(60)
    cfd.cloud.hidden = {"mpi-1": 5, "mpi-2": 2}
    cfd.run(400)
    assert job.done and not job.requeued and cfd.cloud.bought == 2


def test_a_missed_describe_of_a_booting_node_buys_no_second_one(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.boot = 60
    job = cfd.submit(2)
    cfd.run(20)
    cfd.cloud.hidden = {"mpi-1": 4}
    cfd.run(150)
    assert cfd.cloud.bought == 2 and job.running_since


def test_a_restart_while_an_instance_is_not_shown_buys_no_second_one(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.boot = 90
    job = cfd.submit(1)
    cfd.run(75)
    cfd.cloud.hidden = {"mpi-1": 4}
    cfd.run(5)
    cfd.restart()
    cfd.run(120)
    assert cfd.cloud.bought == 1 and job.running_since


def test_a_node_can_be_used_again_as_soon_as_its_instance_is_deleted(cluster: Maker) -> None:
    cfd = cluster(max=1, idle=20)
    first = cfd.submit(1, seconds=20)
    cfd.run(90)
    assert first.done and not cfd.cloud.living
    cfd.submit(1)
    cfd.run(10)
    assert cfd.cloud.bought == 2, "what was deleted is not waited for"


def test_a_booting_node_whose_instance_is_gone_is_launched_again(cluster: Maker) -> None:
    cfd = cluster(resume_timeout=900)
    cfd.cloud.boot = 60
    job = cfd.submit(2)
    cfd.run(20)
    cfd.cloud.delete([next(i.id for i in cfd.cloud.living.values() if i.name == "mpi-1")])
    cfd.run(200)
    assert cfd.cloud.bought == 3 and job.running_since and not job.requeued


def test_a_node_whose_instance_is_gone_is_replaced(cluster: Maker) -> None:
    cfd = cluster()
    job = cfd.submit(2, seconds=300)
    cfd.run(60)
    cfd.cloud.delete([next(i.id for i in cfd.cloud.living.values() if i.name == "mpi-1")])
    cfd.run(100)
    assert job.requeued == 1, "known long before slurmctld misses it"
    cfd.run(700)
    assert job.done


def test_orphans_are_swept_after_a_grace_period(cluster: Maker) -> None:
    cfd = cluster()
    cfd.submit(1, seconds=10**5)
    cfd.run(60)
    living = next(iter(cfd.cloud.living.values()))
    for number, name in enumerate(("old-3", "mpi-5000", "by-hand")):
        orphan = replace(living, id=f"i-orphan{number}", name=name, created=cfd.clock.now)
        cfd.cloud.living[orphan.id] = orphan
    cfd._check = lambda: None  # type: ignore[method-assign]
    cfd.run(60)
    assert len(cfd.cloud.living) == 4
    cfd.run(120)
    assert [i.name for i in cfd.cloud.living.values()] == ["mpi-1"]


def test_a_node_older_than_max_lifetime_is_drained_and_replaced(cluster: Maker) -> None:
    cfd = cluster(max_lifetime=1200, min=1, max=3)
    cfd.run(60)
    job = cfd.submit(1, seconds=1500)
    cfd.run(1500)
    assert job.nodes == ("mpi-1",) and cfd.state_of("mpi-1").drained
    assert not job.done, "a busy node is left alone"
    cfd.run(200)
    assert job.done and not job.requeued
    assert cfd.cloud.deleted == ["mpi-1"] and cfd.cloud.bought == 2
    assert cfd.state_of("mpi-1").up and not cfd.state_of("mpi-1").drained


def test_a_pool_keeps_its_minimum(cluster: Maker) -> None:
    cfd = cluster(min=3)
    cfd.run(60)
    assert cfd.up() == 3
    cfd.run(600)
    assert cfd.up() == 3 and cfd.cloud.bought == 3


def test_a_bootstrap_that_always_fails_stops_the_pool_until_recover(cluster: Maker) -> None:
    cfd = cluster(resume_timeout=60, max=20)
    cfd.cloud.broken = {f"mpi-{n}" for n in range(1, 21)}
    jobs = [cfd.submit(1) for _ in range(4)]
    cfd.run(3600)
    bought = cfd.cloud.bought
    assert 10 <= bought <= 14
    assert not cfd.cloud.living
    assert "hpc.elastic.recover mpi" in cfd.state.memory().stopped["mpi"]
    told = [node for node in cfd.slurm.nodes() if node.down]
    assert any("recover mpi" in node.reason for node in told)
    cfd.run(1800)
    assert cfd.cloud.bought == bought
    cfd.cloud.broken.clear()
    cfd.daemon.handle({"operation": "recover", "pool": "mpi"})
    cfd.run(1500)
    assert all(job.done for job in jobs)


def test_a_few_slow_nodes_of_many_do_not_stop_the_pool(cluster: Maker) -> None:
    cfd = cluster(resume_timeout=60)
    cfd.cloud.broken = {f"mpi-{n}" for n in range(1, 13)}
    for _ in range(100):
        cfd.submit(1, seconds=600)
    cfd.run(90)
    assert cfd.up() == 88
    assert "mpi" not in cfd.state.memory().stopped


def test_old_nodes_do_not_hide_that_no_new_one_comes_up(cluster: Maker) -> None:
    cfd = cluster(resume_timeout=60, max=30)
    cfd.submit(1, seconds=10**6)
    cfd.run(600)
    cfd.cloud.broken = {f"mpi-{n}" for n in range(2, 31)}
    for _ in range(3):
        cfd.submit(1)
    cfd.run(3600)
    assert "mpi" in cfd.state.memory().stopped and cfd.cloud.bought < 20


def test_a_job_above_one_batch_gets_all_of_its_nodes_or_none(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.stock[FIRST, J, "payg"] = 550
    job = cfd.submit(1000)
    cfd.run(60)
    assert not cfd.cloud.living and not job.nodes
    launched = cfd.cloud.bought
    assert launched == cfd.state.counters()["wasted"] <= 550
    assert "no stock" in job.comment
    cfd.run(500)
    assert cfd.cloud.bought == launched, "it is not tried again within the cool-down"
    small = cfd.submit(100)
    cfd.run(900)
    assert small.done, "other jobs are not kept from what there is"
    cfd.cloud.stock[FIRST, J, "payg"] = 1000
    cfd.run(1500)
    assert job.done


@pytest.mark.parametrize("stock", [0, 99])
def test_nothing_is_launched_for_a_large_job_where_little_is_to_be_had(cluster: Maker, stock: int) -> None:
    cfd = cluster()
    cfd.cloud.stock[FIRST, J, "payg"] = stock
    cfd.submit(1000)
    cfd.run(60)
    assert cfd.cloud.bought == 0 and cfd.cloud.calls == 1


def test_a_large_job_is_refused_by_quota_before_much_is_launched(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.quota = 550
    job = cfd.submit(1000)
    cfd.run(60)
    assert not cfd.cloud.living and "quota" in job.comment


def test_quota_that_the_cloud_tells_spares_a_large_job_every_launch(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.quota, cfd.cloud.vcpus_left = 550, 550 * 16
    job = cfd.submit(1000)
    cfd.run(60)
    assert cfd.cloud.bought == 0 and "wasted" not in cfd.state.counters()
    assert "1000 nodes of ecs.c8ae.4xlarge payg in cn-hangzhou-j need 16000 vCPUs" in job.comment
    assert "8800 left" in job.comment and "Quota Center" in job.comment
    cfd.cloud.quota, cfd.cloud.vcpus_left = None, 16000
    cfd.run(1500)
    assert job.done


def test_a_busy_node_whose_instance_is_renamed_is_left_alone(cluster: Maker) -> None:
    cfd = cluster()
    job = cfd.submit(2, seconds=900)
    cfd.run(60)
    ids = {i.name: i.id for i in cfd.cloud.living.values()}
    cfd._check = lambda: None  # type: ignore[method-assign]
    cfd.cloud.living[ids["mpi-1"]] = replace(cfd.cloud.living[ids["mpi-1"]], name="do not touch")
    cfd.run(200)
    cfd.restart()
    cfd.run(500)
    assert cfd.cloud.bought == 2 and not job.requeued and not cfd.cloud.deleted
    cfd.run(600)
    assert job.done and not cfd.cloud.living, "and it goes with its node"
    cfd.run(3700, step=60)
    assert cfd.state.bindings() == {}


@pytest.mark.parametrize("code", ["NoCredentials", "Forbidden.RAM", "InvalidAccountStatus.NotEnoughBalance"])
def test_a_denied_launch_is_told_and_tried_again_without_a_hand(cluster: Maker, code: str) -> None:
    cfd = cluster(types=all_types(), zones=all_zones())
    cfd.cloud.denied = code
    job = cfd.submit(1)
    cfd.run(30)
    assert cfd.cloud.calls == 1, "other types would be denied, too"
    assert f"not allowed: {code}" in job.comment and f"not allowed: {code}" in cfd.state_of("mpi-1").reason
    cfd.cloud.denied = ""
    cfd.run(500)
    assert job.done and cfd.state.memory().stopped == {}


def test_what_a_node_reports_becomes_its_reason(cluster: Maker, tmp_path: Path) -> None:
    cfd = cluster(nodes=True)
    cfd.cloud.boot = 60
    job = cfd.submit(2)
    cfd.run(30)
    assert (tmp_path / "nodes" / "hosts").read_text().split()[1::2] == ["mpi-1", "mpi-2"]
    report = tmp_path / "nodes" / "mpi-2.failed"
    report.write_text("HPC904: the \x1b[31mNAS at 10.0.0.9 does not mount\nmore")
    cfd.run(10)
    reason = cfd.state_of("mpi-2").reason
    assert reason == "hpc: HPC904: the [31mNAS at 10.0.0.9 does not mount"
    assert not report.exists() and job.requeued == 1
    cfd.run(60)
    assert "HPC904" in cfd.state_of("mpi-2").reason and cfd.state_of("mpi-2").down, "people can read it for a while"
    cfd.run(400)
    assert job.done


def test_an_old_report_does_not_end_a_new_start(cluster: Maker, tmp_path: Path) -> None:
    cfd = cluster(nodes=True)
    (tmp_path / "nodes" / "mpi-1.failed").write_text("HPC904: of last week")
    job = cfd.submit(1)
    cfd.run(60)
    assert job.running_since and cfd.cloud.bought == 1


def test_users_keep_what_they_took_out_of_use(cluster: Maker) -> None:
    cfd = cluster(max=6)
    job = cfd.submit(4, seconds=30)
    cfd.run(40)
    assert job.running_since
    cfd.slurm.down(["mpi-1"], "memory errors")
    cfd.slurm.drain(["mpi-2"], "look at me")
    cfd.slurm.records["mpi-3"].flags.add("MAINTENANCE")
    cfd.slurm.down(["mpi-6"], "never use")
    updates = cfd.slurm.updates
    cfd.run(40)
    assert cfd.slurm.updates == updates
    assert cfd.state_of("mpi-1").reason == "memory errors" and cfd.state_of("mpi-1").down
    assert cfd.state_of("mpi-6").reason == "never use" and cfd.state_of("mpi-6").down
    cfd.run(3600, step=20)
    assert cfd.state_of("mpi-1").down and "mpi-1" in {i.name for i in cfd.cloud.living.values()}


def test_a_job_in_a_users_reservation_gets_its_nodes(cluster: Maker) -> None:
    cfd = cluster(max=2)
    job = cfd.submit(2)
    cfd.slurm.tick()
    for record in cfd.slurm.records.values():
        record.flags.add("RESERVED")
    cfd.run(90)
    assert job.running_since and cfd.cloud.bought == 2


def test_a_reservation_makes_no_loop(cluster: Maker) -> None:
    cfd = cluster(max=2, min=1, max_lifetime=300)
    cfd.run(60)
    for record in cfd.slurm.records.values():
        record.flags.add("MAINTENANCE")
    updates = cfd.slurm.updates
    cfd.run(3600, step=20)
    assert cfd.slurm.updates == updates and cfd.cloud.bought == 1 and len(cfd.cloud.living) == 1


def test_somebody_who_gives_a_held_node_back_is_not_overruled(cluster: Maker) -> None:
    cfd = cluster(max=1)
    cfd.cloud.stock[FIRST, J, "payg"] = 0
    cfd.submit(1)
    cfd.run(60)
    assert cfd.state_of("mpi-1").down
    cfd.slurm.resume(["mpi-1"])
    cfd.run(30)
    assert not cfd.state_of("mpi-1").down


def test_a_cloud_that_does_not_answer_changes_nothing(cluster: Maker) -> None:
    cfd = cluster()
    job = cfd.submit(2, seconds=600)
    cfd.run(60)
    cfd.cloud.down = True
    cfd.run(300)
    assert job.running_since and not job.requeued
    cfd.cloud.down = False
    cfd.run(600)
    assert job.done


def test_a_node_left_from_an_earlier_life_is_replaced_at_once(cluster: Maker) -> None:
    cfd = cluster(idle=60)
    first = cfd.submit(1, seconds=10)
    cfd.run(50)
    cfd.watched = False
    cfd.run(300)
    assert first.done and cfd.state_of("mpi-1").powered_down and cfd.cloud.living
    job = cfd.submit(1)
    cfd.run(5)
    cfd.restart()
    cfd.run(100)
    assert job.running_since, "long before ResumeTimeout"
    assert cfd.cloud.bought == 2 and len(cfd.cloud.living) == 1


def test_a_lost_message_of_resumeprogram_does_not_split_a_job(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.stock[FIRST, J, "payg"] = 150
    cfd.watched = False
    cfd.submit(200)
    cfd.run(5)
    cfd.watched = True
    cfd.run(30)
    assert not cfd.cloud.living and cfd.cloud.bought == cfd.state.counters()["wasted"]
    assert {step.job for step in cfd.steps if isinstance(step, Launch)} == {1}


def test_refusals_are_told_with_few_calls(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.stock[FIRST, J, "payg"] = 0
    for _ in range(1000):
        cfd.submit(1)
    cfd.run(10, step=5)
    assert sum(node.down for node in cfd.slurm.nodes()) == 1000
    assert cfd.slurm.updates <= 4 and cfd.slurm.tells <= 2


def test_the_daemon_is_killed_at_any_look(cluster: Maker) -> None:
    cfd = cluster(charge="spot")
    jobs = [cfd.submit(3, seconds=100) for _ in range(4)]
    for _ in range(60):
        cfd.run(10)
        cfd.restart()
    assert all(job.done and not job.requeued for job in jobs)
    assert cfd.cloud.bought == 12 and not cfd.cloud.living


def test_downs_have_a_reason(cluster: Maker) -> None:
    cfd = cluster()
    cfd.cloud.stock[FIRST, J, "payg"] = 0
    cfd.submit(3)
    cfd.run(20)
    assert all(step.reason for step in cfd.steps if isinstance(step, Down))


def test_killed_is_no_exception() -> None:
    assert not issubclass(Killed, Exception)
