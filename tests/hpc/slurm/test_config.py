"""slurm.conf and its siblings: golden files per shipped stack, and the rules behind the lines."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from ClusterShell.NodeSet import NodeSet

from hpc.catalog import Catalog
from hpc.errors import RefusedError
from hpc.paths import PROJECT_ROOT
from hpc.slurm.config import cgroup_conf, slurm_conf, slurmdbd_conf, topology_conf
from hpc.slurm.profile import CLOUD, LOCAL
from hpc.slurm.shape import hostlist, node_shape
from hpc.spec.cluster import ClusterSpec
from tests.hpc.slurm.conftest import load_stack, profile_of

GOLDEN = PROJECT_ROOT / "tests/hpc/slurm/golden"


def cluster(**changes: Any) -> ClusterSpec:
    pool = {"name": "mpi", "instance_types": ["ecs.c8ae.4xlarge"]}
    base: dict[str, Any] = {"name": "c", "region": "cn-hangzhou", "zones": ["cn-hangzhou-j"], "pools": [pool]}
    return ClusterSpec.model_validate(base | changes)


def pool(**changes: Any) -> ClusterSpec:
    return cluster(pools=[{"name": "mpi", "instance_types": ["ecs.c8ae.4xlarge"]} | changes])


def line(text: str, start: str) -> str:
    return next(found for found in text.splitlines() if found.startswith(start))


def test_golden(stack: str, catalog: Catalog) -> None:
    """`HPC_GOLDEN=write pytest tests/hpc/slurm/test_config.py` writes the files again."""
    spec, profile = load_stack(stack), profile_of(stack)
    made = {
        "slurm.conf": slurm_conf(spec, catalog, profile),
        "slurmdbd.conf": slurmdbd_conf(spec),
        "cgroup.conf": cgroup_conf(spec, profile),
    }
    for name, text in made.items():
        path = GOLDEN / stack / name
        if os.environ.get("HPC_GOLDEN") == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text()


def test_every_parameter_stands_once(stack: str, catalog: Catalog) -> None:
    text = slurm_conf(load_stack(stack), catalog, profile_of(stack))
    keys = [found[1] for found in re.finditer(r"^([A-Za-z]+)=", text, re.M)]
    repeatable = {"SlurmctldHost", "NodeName", "PartitionName"}
    assert not {key for key in keys if keys.count(key) > 1} - repeatable


def test_node_names_are_what_a_hostlist_parser_reads(stack: str, catalog: Catalog) -> None:
    spec = load_stack(stack)
    text = slurm_conf(spec, catalog)
    named = NodeSet()
    for found in re.finditer(r"^NodeName=(\S+)", text, re.M):
        named.update(found[1])
    assert set(named) == {f"{p.name}-{n}" for p in spec.pools for n in range(1, p.max + 1)}


@pytest.mark.parametrize(("name", "first", "last"), [("mpi", 1, 1), ("c-1", 1, 9), ("a0", 1, 10000), ("x-00", 2, 11)])
def test_hostlist(name: str, first: int, last: int) -> None:
    assert set(NodeSet(hostlist(name, first, last))) == {f"{name}-{n}" for n in range(first, last + 1)}


def test_real_memory_leaves_a_margin(catalog: Catalog) -> None:
    for percent in (1, 5, 50):
        spec = pool(memory_margin_percent=percent)
        memory = catalog.instance_type("ecs.c8ae.4xlarge").memory_gib * 1024  # type: ignore[union-attr]
        shape = node_shape(spec, spec.pools[0], catalog)
        assert memory / 2 <= shape.memory_mib <= memory - 512
        assert shape.memory_mib <= memory * (1 - percent / 100) + 1


def test_hyperthreading_decides_the_threads(catalog: Catalog) -> None:
    kind = catalog.instance_type("ecs.c8i.large")
    assert kind is not None and kind.threads_per_core == 2
    shapes = [
        node_shape(spec, spec.pools[0], catalog)
        for spec in (pool(instance_types=["ecs.c8i.large"], hyperthreading=on) for on in (False, True))
    ]
    assert [shape.threads for shape in shapes] == [1, 2]
    assert [shape.cpus for shape in shapes] == [kind.physical_cores, kind.vcpus]


def test_several_types_give_the_smallest(catalog: Catalog) -> None:
    spec = pool(instance_types=["ecs.c8ae.16xlarge", "ecs.c8i.large"])
    alone = pool(instance_types=["ecs.c8i.large"])
    mixed, small = node_shape(spec, spec.pools[0], catalog), node_shape(alone, alone.pools[0], catalog)
    assert (mixed.cores, mixed.memory_mib) == (small.cores, small.memory_mib)
    assert not {"c8ae", "c8i"} & set(mixed.features)
    assert "c8i" in small.features


def test_unknown_type_is_refused(catalog: Catalog) -> None:
    with pytest.raises(RefusedError) as caught:
        slurm_conf(pool(instance_types=["ecs.none.large"]), catalog)
    assert caught.value.code == "HPC803"


def test_minimum_is_never_suspended(catalog: Catalog) -> None:
    assert line(slurm_conf(pool(min=3, max=5), catalog), "SuspendExcNodes=") == "SuspendExcNodes=mpi-[1-3]"
    assert "SuspendExcNodes" not in slurm_conf(pool(), catalog)


def test_times_of_each_pool(catalog: Catalog) -> None:
    spec = cluster(
        pools=[
            {"name": "a", "instance_types": ["ecs.c8ae.4xlarge"], "idle": "90s", "resume_timeout": "5m"},
            {"name": "b", "instance_types": ["ecs.c8ae.4xlarge"], "max_time": "2d", "weight": 3},
        ],
        slurm={"default_partition": "b"},
    )
    text = slurm_conf(spec, catalog)
    assert "Default=NO MaxTime=INFINITE" in line(text, "PartitionName=a")
    assert "SuspendTime=90 " in line(text, "PartitionName=a") and line(text, "PartitionName=a").endswith(
        "ResumeTimeout=300"
    )
    assert "Default=YES MaxTime=2880" in line(text, "PartitionName=b")
    assert line(text, "SuspendTime=") == "SuspendTime=600"
    assert line(text, "NodeName=b").endswith("Weight=3")


def test_user_parameters_replace_ours(catalog: Catalog) -> None:
    text = slurm_conf(
        cluster(slurm={"parameters": {"killwait": "60", "PriorityType": "priority/multifactor"}}), catalog
    )
    assert "KillWait=30" not in text and "killwait=60" in text and "PriorityType=priority/multifactor" in text


def test_reserved_parameters_are_refused(catalog: Catalog) -> None:
    with pytest.raises(RefusedError) as caught:
        slurm_conf(cluster(slurm={"parameters": {"resumeprogram": "/bin/true"}}), catalog)
    assert caught.value.code == "HPC805"


def test_backup_shares_the_state(catalog: Catalog) -> None:
    text = slurm_conf(cluster(management={"backup": True}), catalog)
    assert re.findall(r"^SlurmctldHost=(.*)$", text, re.M) == ["management-0", "management-1"]
    assert line(text, "StateSaveLocation=") == "StateSaveLocation=/opt/hpc/state/slurmctld"


def test_local_hosts_have_no_control_groups(catalog: Catalog) -> None:
    local, cloud = slurm_conf(pool(), catalog, LOCAL), slurm_conf(pool(), catalog, CLOUD)
    assert "cgroup" not in local and "config_overrides" in local
    assert "proctrack/cgroup" in cloud and "config_overrides" not in cloud


def test_topology_only_when_asked(catalog: Catalog) -> None:
    assert topology_conf(cluster()) is None
    asked = cluster(slurm={"topology": True})
    assert "SwitchName=mpi Nodes=mpi-[1-8]" in str(topology_conf(asked))
    assert "TopologyPlugin=topology/tree" in slurm_conf(asked, catalog)


def test_power_down_on_idle_only_where_slurm_knows_it(catalog: Catalog) -> None:
    for os_name, known in (("debian-12", False), ("ubuntu-24.04", True)):
        spec = cluster(
            image={"os": os_name}, pools=[{"name": "a", "instance_types": ["ecs.c8ae.4xlarge"], "idle": "0s"}]
        )
        assert ("PowerDownOnIdle" in slurm_conf(spec, catalog)) is known
