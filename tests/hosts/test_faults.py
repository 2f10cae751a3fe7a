"""What befalls a cluster on real hosts, as users and operators see it. The tests build on each other, in order."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime

import pytest
from alibabacloud_ecs20140526 import models as ecs
from site_of_tests import MANAGEMENT, REGION, USER, Site

from hpc.demo.job import SOURCE

pytestmark = [pytest.mark.hosts, pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

#: Says who runs it, then works for a while, one second after the other.
WORK = "srun hostname; for i in $(seq {seconds}); do sleep 1; done; echo done"
ALL_FILES = "find /etc /opt/hpc/ /usr/local -xdev -type f ! -name '*.pyc' ! -path '*/nodes/*' ! -path '*/state/*'"
#: Tests that wait for minutes and move the cloud's clock; not in the default run.
LONG_ONES = pytest.mark.skipif("HPC_HOSTS_ALL" not in os.environ, reason="takes minutes more: set HPC_HOSTS_ALL=1")
SERVICES = "mariadb slurmdbd slurmctld munge hpc-elastic"


def test_bootstrap_that_fails_says_why_and_the_next_run_goes_on(site: Site) -> None:
    failed, done = site.runs[:2]
    assert failed.code == 2
    told = [issue["message"] for issue in failed.document["report"]["issues"]]
    assert any("HPC905: the package mirror does not answer" in text for text in told), told
    assert failed.seconds < 240
    assert done.code == 0
    # What was made before was not made again.
    assert not [change for change in done.changed if "Instance" in change or change.startswith("replace")]


def test_up_again_changes_nothing(site: Site) -> None:
    seen = f"({ALL_FILES} -exec sha256sum {{}} + | sort -k2; systemctl show -p ActiveEnterTimestamp {SERVICES})"
    before = site.management(seen)
    again = site.up()
    assert (again.code, again.changed) == (0, [])
    assert site.management(seen) == before
    site.tune()  # for the tests that follow


def test_mpi_job_on_an_empty_cluster(site: Site) -> None:
    assert site.nodes() == {}
    site.user("mkdir -p heat && cat > heat/heat.c", SOURCE.read_text())
    site.user("cd heat && module load mpi && mpicc -O2 -o heat heat.c -lm")
    job = site.submit("module load mpi; srun heat/heat 20 2000", "--nodes=2", "--ntasks-per-node=1")
    site.completed(job)
    assert "ranks 2 cells 40 steps 2000 largest difference" in site.output(job)
    for item in site.cloud.snapshot()["resources"]["instance"]:
        if item["name"].startswith("mpi-"):
            assert item["charge"] == "spot"
    site.settled()
    assert site.management("sinfo -R -h").strip() == ""
    assert "Running job" not in site.journal(), "its libraries say nothing of their own"


def test_login_node_stopped_and_started(site: Site) -> None:
    login = site.instance("login-0")
    site.ecs.stop_instance(ecs.StopInstanceRequest(instance_id=login))
    site.until(lambda: site.try_login("true").returncode, "the login node to be away", 60)
    site.until(lambda: site.status("login-0") == "Stopped", "the login node to stop", 60)
    site.ecs.start_instance(ecs.StartInstanceRequest(instance_id=login))
    site.until(lambda: site.try_login("mountpoint -q /home && sinfo -h").returncode == 0, "the login node", 60)
    assert site.user("test -x heat/heat && squeue -h && sbatch --test-only --wrap hostname; echo $USER").strip() == USER


def test_job_outlives_a_reboot_of_the_management_node(site: Site) -> None:
    job = site.submit(WORK.format(seconds=30), "--nodes=2")
    site.started(job)
    nodes = site.nodes()
    booted = site.management("cat /proc/sys/kernel/random/boot_id; systemctl show -p ActiveEnterTimestamp slurmctld")
    site.ecs.reboot_instance(ecs.RebootInstanceRequest(instance_id=site.instance(MANAGEMENT)))
    site.until(
        lambda: (
            (seen := site.try_management("systemctl is-active slurmctld hpc-elastic")).returncode == 0
            and seen.stdout.split() == ["active"] * 2
            and site.try_management("systemctl show -p ActiveEnterTimestamp slurmctld").stdout.strip() not in booted
        ),
        "the management node to be back",
        60,
    )
    assert site.nodes() == nodes
    site.completed(job)
    assert site.output(job).splitlines()[-1] == "done"
    assert len(re.findall("^mpi-", site.output(job), re.M)) == 2  # it ran once
    steps = site.management(f"sacct -n -P -j {job} -o jobid,state,exitcode,nnodes")
    assert steps.splitlines()[:3] == [
        f"{job}|COMPLETED|0:0|2",
        f"{job}.batch|COMPLETED|0:0|1",
        f"{job}.0|COMPLETED|0:0|2",
    ]


def test_spot_reclaim_requeues_the_job(site: Site) -> None:
    _launch_orphan_and_stranger(site)
    job = site.submit(WORK.format(seconds=15), "--nodes=2")
    site.started(job)
    (name, lost), *_ = sorted(item for item in site.nodes().items() if item[0] != "ghost-1")
    site.cloud.reclaim(lost, notice=60)
    site.until(lambda: site.queue(job) == "PENDING", "the job to be requeued", 30)
    site.now(job)
    site.completed(job)
    assert lost not in site.nodes().values()
    assert f"down: {name}: the cloud takes this spot instance back" in site.journal()
    assert site.output(job).splitlines()[-1] == "done"
    lives = site.management(f"sacct -X -n -P --duplicates -j {job} -o state").split()
    assert lives[-1] == "COMPLETED" and len(lives) == 2 and lives[0] in ("NODE_FAIL", "REQUEUED")


def test_orphan_is_swept_and_a_stranger_is_left_alone(site: Site) -> None:
    # They were launched before the test above: an instance is left alone at first.
    site.until(lambda: "ghost-1" not in site.nodes(), "the orphan to be swept", 100)
    assert "no node of this cluster has its name" in site.journal()
    assert site.status("stranger") == "Running"
    stranger = [site.instance("stranger")]
    site.ecs.delete_instances(ecs.DeleteInstancesRequest(region_id=REGION, instance_id=stranger, force=True))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("nas_denied", "HPC901: .* does not mount on /home"),
        ("mirror_off", "HPC905: the package mirror does not answer"),
    ],
)
def test_node_that_cannot_be_set_up_says_why(site: Site, fault: str, reason: str) -> None:
    site.emptied()
    with getattr(site, fault)():
        job = site.submit("hostname; echo done")
        bad = site.reason(f"^(mpi-.) hpc: {reason}", 110)[1]
        assert re.search(f"down: {bad}: {reason}|could not start: {bad}: {reason}", site.journal())
        site.until(lambda: bad not in site.nodes(), "the instance to go", 30)
    site.until(lambda: site.queue(job) == "PENDING", "the job to be requeued", 30)
    site.now(job)
    site.completed(job)
    assert site.output(job).splitlines()[-1] == "done"


@LONG_ONES
def test_pool_whose_nodes_never_register_stops_buying(site: Site) -> None:
    with site.controller_unreachable():
        job = site.submit("hostname; echo done", "--nodes=2", "--partition=brief")
        site.until(
            lambda: "not registered within" in site.journal().partition("stops buying")[2], "the pool to stop", 120
        )
        site.until(lambda: site.nodes() == {}, "the instances to go", 30)
        bought = len(site.cloud.calls("RunInstances"))
    site.until(lambda: site.queue(job) == "PENDING", "the job to be requeued", 30)
    # slurmctld gives up on a node in the same moment as the daemon; the later one's reason stays.
    assert re.search(r"^brief-1 (hpc: not registered within 45 s|ResumeTimeout reached)$", site.reasons(), re.M)
    assert len(site.cloud.calls("RunInstances")) == bought
    site.management(f"scancel {job}")


@LONG_ONES
def test_pool_that_stopped_buying_says_so_and_is_recovered(site: Site) -> None:
    job = site.submit("hostname; echo done", "--partition=brief")
    # The nodes stay out of use for two minutes, and are asked for after that.
    told = site.reason("pool brief buys nothing: 2 starts failed in a row: .*then run as root: (.*)", 200)
    site.management(told[1])

    def completed() -> bool:
        site.now(job)
        return site.state(job) == "COMPLETED"

    site.until(completed, "the job to complete after that", 150)


@LONG_ONES
def test_nodes_are_released_when_the_daemon_is_gone(site: Site) -> None:
    job = site.submit("hostname; sleep 600", "--partition=brief")
    site.started(job)
    lost = site.nodes()[site.management(f"squeue -h -j {job} -o %N").strip()]
    site.management("systemctl kill -s KILL hpc-elastic; systemctl stop hpc-elastic")
    (item,) = [i for i in site.cloud.snapshot()["resources"]["instance"] if i["id"] == lost]
    left = item["auto_release"] - site.cloud.now()
    assert 15 * 60 < left <= 45 * 60, datetime.fromtimestamp(item["auto_release"], UTC)
    site.cloud.advance_clock(left - 30)
    time.sleep(2)
    assert lost in site.nodes().values()
    site.cloud.advance_clock(31)
    site.until(lambda: lost not in site.nodes().values(), "the cloud to release the node", 20)
    site.management("systemctl start hpc-elastic")
    site.until(lambda: site.queue(job) == "PENDING", "the job to be requeued", 60)
    site.management(f"scancel {job}")
    site.settled()
    again = site.submit("hostname")
    site.completed(again)


def _launch_orphan_and_stranger(site: Site) -> None:
    """Instances that no node of Slurm stands for: one with the cluster's tags, one without."""
    pool = site.settings()["pools"][0]
    common = {
        "region_id": REGION,
        "image_id": pool["image_id"],
        "instance_type": pool["types"][0]["name"],
        "v_switch_id": pool["zones"][0]["vswitch_id"],
        "security_group_id": pool["security_group_id"],
    }
    tags = [ecs.RunInstancesRequestTag(key=key, value=value) for key, value in pool["tags"].items()]
    site.ecs.run_instances(ecs.RunInstancesRequest(instance_name="ghost-1", tag=tags, **common))
    site.ecs.run_instances(ecs.RunInstancesRequest(instance_name="stranger", **common))
