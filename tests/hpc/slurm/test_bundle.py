"""The bundle is deterministic and names what changed; user data, facts, mounts, settings of daemon and fabric."""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from hpc.catalog import Catalog
from hpc.elastic.settings import parse
from hpc.errors import RefusedError
from hpc.paths import PROJECT_ROOT
from hpc.slurm import layout
from hpc.slurm.bundle import build_bundle, bundle_files, cluster_env
from hpc.slurm.facts import Facts, MountFact, NodeFact, PoolFact
from hpc.slurm.mounts import mounts_of
from hpc.slurm.mpi import MODULES, VERSIONS, fabric_settings
from hpc.slurm.pools import elastic_settings
from hpc.slurm.profile import CLOUD, LOCAL
from hpc.slurm.requirements import FILE, pinned
from hpc.slurm.userdata import LIMIT, compute_user_data, node_user_data
from hpc.spec.cluster import ClusterSpec
from hpc.spec.pool import Interconnect
from hpc.spec.software import MpiStack
from tests.hpc.slurm.conftest import load_stack


def facts_of(spec: ClusterSpec) -> Facts:
    return Facts(
        region=spec.region,
        vpc_cidr=str(spec.network.cidr),
        management=(NodeFact("management-0", "10.20.0.5"),),
        login=(NodeFact("login-0", "10.20.0.6"),),
        mounts=tuple(MountFact(entry.mount, f"fs{i}.nas.aliyuncs.com") for i, entry in enumerate(spec.storage)),
        vswitches={zone: f"vsw-{zone}" for zone in spec.zones},
        security_group_id="sg-1",
        ram_role="role",
        pools={pool.name: PoolFact(f"lt-{pool.name}", "m-1", {"cn-hangzhou-j": "ds-1"}) for pool in spec.pools},
    )


def test_same_input_same_archive(stack: str, catalog: Catalog, tmp_path: Path) -> None:
    first, second = (build_bundle(load_stack(stack), catalog, tmp_path / name) for name in ("a", "b"))
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.path.name == second.path.name and first.digest == second.digest
    with tarfile.open(first.path) as archive:
        entries = archive.getmembers()
    assert {(entry.uid, entry.mtime) for entry in entries} == {(0, 0)}
    modes = {entry.name: entry.mode for entry in entries}
    tools = ("check-nodes", "run-mpi", "restart-mpi")
    assert {modes[name] for name in ("bootstrap/prolog.sh", *(f"scripts/mpi/{tool}" for tool in tools))} == {0o755}
    assert modes["scripts/mpi/probe.sh"] == 0o644


def test_parts_say_what_changed(catalog: Catalog, tmp_path: Path) -> None:
    spec = load_stack("dev")
    before = build_bundle(spec, catalog, tmp_path)
    pool = spec.pools[0].model_copy(update={"max": 9})
    after = build_bundle(spec.model_copy(update={"pools": (pool,)}), catalog, tmp_path)
    assert {part for part in before.parts if before.parts[part] != after.parts[part]} == {"slurm.conf", "cluster.env"}
    differing = set(before.triggers()) ^ set(after.triggers())
    assert sorted(entry.split()[0] for entry in differing) == ["cluster.env"] * 2 + ["slurm.conf"] * 2


def test_bundle_holds_all_that_the_scripts_read(stack: str, catalog: Catalog) -> None:
    files = bundle_files(load_stack(stack), catalog)
    for name in ("compute.sh", "lib.sh", "management.sh", "mpi.sh", "prolog.sh", "mpi-openmpi.txt"):
        assert f"bootstrap/{name}" in files
    for name in ("resume", "suspend", "daemon", "settings", "decide"):
        if (PROJECT_ROOT / f"hpc/elastic/{name}.py").exists():
            assert f"elastic/hpc/elastic/{name}.py" in files
    assert not [name for name in files if "pycache" in name or "munge.key" in name or name.endswith("codes.toml")]


def test_scripts_and_layout_name_the_same_places() -> None:
    scripts = "".join(path.read_text() for path in (PROJECT_ROOT / "scripts/bootstrap").glob("*.sh"))
    for path in (layout.CLUSTER_LINK, layout.RESUME_PROGRAM[:-6], layout.ELASTIC_VENV, layout.LOCAL_STATE):
        assert path in scripts
    for path in (layout.HOSTS_OF_NODES, layout.SHARED_STATE, layout.NODES):
        assert path.replace(layout.CLUSTER_LINK, "$HPC_LINK") in scripts


def test_cluster_env_is_shell(stack: str) -> None:
    spec = load_stack(stack)
    text = cluster_env(spec) + 'printf "%s|" "$HPC_CLUSTER" "$HPC_MPI_STACKS" "$HPC_HOMES"'
    done = subprocess.run(["bash", "-euc", text], capture_output=True, text=True, check=True)
    assert done.stdout.split("|")[0] == spec.name
    assert done.stdout.split("|")[1].split() == [f"{MODULES[stack]}/{VERSIONS[stack]}" for stack in spec.mpi.stacks]
    assert done.stdout.split("|")[2] == "/home"


def test_compute_user_data(stack: str) -> None:
    spec = load_stack(stack)
    mounts = mounts_of(spec, facts_of(spec).mounts)
    for pool in spec.pools:
        text = compute_user_data(spec, pool, mounts)
        assert text.startswith("#!/bin/bash\n") and len(text.encode()) < LIMIT
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        assert "fs0.nas.aliyuncs.com:/" in text and f"pool={pool.name} " in text
        assert not re.search(r"(?i)password|private key|munge\.key", text)


def test_compute_user_data_fails_with_a_reason(tmp_path: Path) -> None:
    spec = load_stack("local")
    text = compute_user_data(spec, spec.pools[0], mounts_of(spec, {"/home": "fs.nas.aliyuncs.com"}))
    text = text.replace("/var/log", str(tmp_path)).replace("/dev/console", str(tmp_path / "console"))
    (tmp_path / "console").touch()
    for name, body in (("mount", "exit 32"), ("mountpoint", "exit 1"), ("mount.nfs", ""), ("sleep", ""), ("mkdir", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    text = text.replace("export PATH=", f"export PATH={tmp_path}:")
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True)
    assert done.returncode == 1
    for said in (done.stderr, (tmp_path / "console").read_text(), (tmp_path / "hpc-bootstrap.log").read_text()):
        assert said.startswith("HPC901: fs.nas.aliyuncs.com:/ does not mount on /home")


def test_node_user_data_is_cloud_config() -> None:
    text = node_user_data(load_stack("dev"))
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text)["ssh_pwauth"] is False


def test_mount_options_follow_the_kind_of_nas() -> None:
    spec = load_stack("prod")
    general, extreme = mounts_of(spec, {"/home": "a.nas", "/scratch": "b.extreme.nas"})
    assert general.source == "a.nas:/" and extreme.source == "b.extreme.nas:/share"
    for mount in (general, extreme):
        options = mount.options.split(",")
        assert {"hard", "noatime", "rsize=1048576", "wsize=1048576", "noresvport", "_netdev"} <= set(options)
    assert "vers=4" in general.options.split(",") and "vers=3" in extreme.options.split(",")
    with pytest.raises(RefusedError) as caught:
        mounts_of(spec, {"/home": "a.nas"})
    assert caught.value.code == "HPC802"


def test_facts_survive_json(stack: str) -> None:
    facts = facts_of(load_stack(stack))
    assert Facts.from_json(facts.to_json()) == facts


def test_the_daemon_reads_its_settings(stack: str, catalog: Catalog) -> None:
    spec = load_stack(stack)
    settings = parse(elastic_settings(spec, catalog, facts_of(spec)))
    assert settings.cluster == spec.name and set(settings.pools) == {pool.name for pool in spec.pools}
    for pool in spec.pools:
        read = settings.pools[pool.name]
        assert [kind.name for kind in read.types] == list(pool.instance_types)
        assert read.idle == pool.idle.total_seconds() and read.max == pool.max and read.charge == pool.charge
        assert read.launch_template_id == f"lt-{pool.name}"
        assert [zone.vswitch_id for zone in read.zones] == [f"vsw-{zone}" for zone in spec.pool_zones(pool)]
        wanted = "HighPerformance" if pool.interconnect is Interconnect.ERDMA else "Standard"
        assert read.traffic_mode == wanted
    assert str(settings.hosts_file) == layout.HOSTS_OF_NODES


@pytest.mark.parametrize("stack_", list(MpiStack))
def test_erdma_pools_cannot_fall_back_to_tcp(stack_: MpiStack) -> None:
    spec = load_stack("dev")
    rdma = fabric_settings(stack_, Interconnect.ERDMA, spec)
    tcp = fabric_settings(stack_, Interconnect.TCP, spec)
    if stack_ is MpiStack.OPENMPI:
        assert rdma["OMPI_MCA_pml"] == "ucx" and "tcp" not in rdma["UCX_TLS"] and rdma["UCX_RC_VERBS_USE_SRQ"] == "n"
        assert tcp["OMPI_MCA_btl_tcp_port_min_v4"] == "30000" and tcp["OMPI_MCA_btl_tcp_port_range_v4"] == "1001"
    else:
        assert rdma["FI_PROVIDER"] == "verbs;ofi_rxm" and tcp["FI_PROVIDER"] == "tcp"


def test_ranks_yield_only_where_cores_are_shared() -> None:
    spec = load_stack("local")
    local = fabric_settings(MpiStack.OPENMPI, Interconnect.TCP, spec, LOCAL)
    cloud = fabric_settings(MpiStack.OPENMPI, Interconnect.TCP, spec, CLOUD)
    assert local["OMPI_MCA_mpi_yield_when_idle"] == "1" and "OMPI_MCA_mpi_yield_when_idle" not in cloud


def test_requirements_of_the_daemon_follow_the_lock_file() -> None:
    """`python -m hpc.slurm.requirements > hpc/slurm/elastic-requirements.txt` writes it again."""
    text = FILE.read_text()
    assert text == pinned()
    assert re.search(r"^alibabacloud-ecs20140526==\S+ \\$", text, re.M) and "pulumi" not in text


def test_versions_of_mpi_are_those_of_the_pinned_wheels() -> None:
    for stack, version in VERSIONS.items():
        text = (PROJECT_ROOT / f"scripts/bootstrap/mpi-{MODULES[stack]}.txt").read_text()
        assert set(re.findall(r"==(\S+)", text)) == {version}
