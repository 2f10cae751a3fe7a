"""Instance hosts and the demonstration on them, part by part, each with its bar.

Hosts: building the public image, from start to SSH for 1, 3 and 16 at once, memory of an idle host. The demonstration:
the local cloud, `hpc up`, a job from its submission to the release of its nodes, memory of a compute node.

    hosts.py [--image] [hosts|demo]     --image also builds the public image anew; without a word both parts run

Needs root and Linux namespaces, and the Pulumi engine for the demonstration. The baseline of the hosts is systemd
alone: the same image booted without network, metadata and cloud-init, until its last unit is up.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/localcloud/hosts"))

from host_cloud import Cloud, wait_for

from localcloud.contracts import Host
from localcloud.hosts import container, image, namespaces, support
from localcloud.hosts.cgroups import HostGroups, remove_parent
from localcloud.hosts.disks import Disks
from localcloud.hosts.naming import Names
from localcloud.hosts.processes import Process
from localcloud.hosts.reset import reset

#: Bars: MiB of an idle host; s of `hpc up` with everything cached, from sbatch to registered and to running, and of the
#: whole demonstration.
BAR_MEMORY_MIB = 120
BARS_S = {"hpc up": 150.0, "registered": 15.0, "running": 45.0, "demonstration": 240.0}


def main() -> int:
    parts = {"hosts", "demo"} & set(sys.argv) or {"hosts", "demo"}
    code = hosts() if "hosts" in parts else 0
    return code or (demonstration() if "demo" in parts else 0)


def told(what: str, seconds: float, bar: float | None = None) -> None:
    ratio = f"   bar {bar:5.0f} s, {seconds / bar:4.2f} of it" if bar else ""
    print(f"{what:44} {seconds:6.1f} s{ratio}", flush=True)


def demonstration() -> int:
    """`make demo` with everything cached, in a state folder of its own."""
    from hpc.demo.job import Host, run_job
    from hpc.demo.run import NODES, STACK_FILE
    from hpc.deploy.access import ssh_command
    from hpc.deploy.local import cloud_dir, ensure_cloud, remove_cloud
    from hpc.deploy.session import open_session
    from hpc.engine.cli import find_cli
    from hpc.paths import cache_dir
    from hpc.preview.run import up_session
    from hpc.spec.names import TAG_POOL

    if find_cli() is None:
        print("demonstration skipped: no Pulumi engine (make it with: python -m hpc.engine path)")
        return 0
    os.environ["HPC_CACHE_DIR"] = str(cache_dir())
    state = tempfile.mkdtemp(prefix="demo-benchmark-")
    os.environ["HPC_STATE_DIR"] = state
    try:
        begin = time.perf_counter()
        cloud = ensure_cloud(lambda line: None, hosts=True)
        told("local cloud started", time.perf_counter() - begin)
        with open_session(STACK_FILE, progress=lambda line: None, hosts=True) as session:
            at = time.perf_counter()
            applied = up_session(session)
            assert applied.done is not None and applied.done.succeeded, applied
            told("preview with the rules", time.perf_counter() - at - applied.done.seconds)
            told("hpc up: management and login bootstrapped", applied.done.seconds, BARS_S["hpc up"])
            base = ssh_command(session, command=[])
        shares: list[float] = []

        def look(line: str) -> None:
            if line.endswith("finished"):
                for item in cloud.instances():
                    if TAG_POOL in item["tags"]:
                        shares.append(proportional_mib(HostGroups(Names.of(cloud_dir()).cgroup, item["id"])))

        outcome = run_job(Host(lambda text: [*base, text]), NODES, cloud, look)
        whole = time.perf_counter() - begin
        for milestone in outcome.timeline:
            bar = next((BARS_S[key] for key in ("registered", "running") if milestone.what.endswith(key)), None)
            told(f"  sbatch to: {milestone.what}", milestone.seconds, bar)
        told("demonstration, start to release of the nodes", whole, BARS_S["demonstration"])
        print(f"memory of an idle compute node: {max(shares):.0f} MiB (bar: {BAR_MEMORY_MIB} MiB)")
    finally:
        remove_cloud(lambda line: None)
        shutil.rmtree(state, ignore_errors=True)
    return 0


def hosts() -> int:
    with tempfile.TemporaryDirectory(prefix="hosts-benchmark-") as folder:
        state_dir = Path(folder)
        if why := support.prepare(state_dir, print):
            print("skipped:", "; ".join(why))
            return 0
        print(f"machine: {os.cpu_count()} CPUs, Linux {os.uname().release}")
        built = build_seconds(state_dir) if "--image" in sys.argv else None
        print(f"public image, built anew        {f'{built:6.1f} s' if built else 'not measured (give --image)'}")
        root = image.ensure_image(print)
        size = subprocess.run(["du", "-sm", root], capture_output=True, text=True, check=True).stdout.split()[0]
        print(f"public image, size              {size:>6} MiB")
        print(f"baseline: systemd alone         {baseline_seconds(state_dir / 'bare', root):6.1f} s")
        key = state_dir / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        cloud = Cloud(state_dir / "cloud", key)
        try:
            cloud.adopt()
            cloud.add_vpc("bench", "10.90.0.0/24")
            for count in (1, 3, 16):
                measure(cloud, count)
        finally:
            cloud.backend.close()
            reset(state_dir / "cloud", data=True)
    return 0


def build_seconds(folder: Path) -> float:
    begin = time.perf_counter()
    image.ensure_image(lambda _: None, cache=folder / "cache")
    return time.perf_counter() - begin


def baseline_seconds(folder: Path, root: Path) -> float:
    """The same image with cloud-init switched off and no network, until systemd says multi-user."""
    host = Host("i-bare", "bare", "", "", "", "", (), 2, 4096, "", "")
    disks = Disks(folder, lambda: root, "alihpc-bench-")
    groups = HostGroups("alihpc-bench", host.instance_id)
    console = folder / "console"
    namespaces.create("alihpc-bench")
    try:
        mounted = disks.mount(host.instance_id, "")
        (mounted / "etc/cloud/cloud-init.disabled").touch()
        groups.create(memory_mib=4096, vcpus=2)
        begin = time.perf_counter()
        with container.spawn(host, mounted, "alihpc-bench", groups.folders, console) as child:
            loop = Process.of(child.pid)
            assert loop is not None
            wait_for(lambda: "target multi-user.target" in console.read_text(), "multi-user", 60)
            seconds = time.perf_counter() - begin
            container.kill(loop)
    finally:
        disks.unmount(host.instance_id)
        groups.remove()
        remove_parent("alihpc-bench")
        namespaces.delete("alihpc-bench")
    return seconds


def charged_mib(groups: HostGroups) -> float:
    files = [folder / name for folder in groups.folders for name in ("memory.usage_in_bytes", "memory.current")]
    return sum(int(file.read_text()) for file in files if file.exists()) / 2**20


def proportional_mib(groups: HostGroups) -> float:
    """Sum of PSS (proc(5), smaps_rollup): a page that n processes share counts 1/n for each."""
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in groups.processes()]
    return sum(int(line.split()[1]) for text in texts for line in text.splitlines() if line.startswith("Pss:")) / 1024


def measure(cloud: Cloud, count: int) -> None:
    hosts = [
        cloud.add_host(f"node-{n}", "vpc-bench", f"10.90.0.{10 + n}", eip=f"198.18.9.{10 + n}", start=False)
        for n in range(count)
    ]
    begin = time.perf_counter()

    def up(n: int) -> float:
        cloud.backend.start(hosts[n])
        called.append(time.perf_counter() - begin)
        cloud.wait_ssh(f"198.18.9.{10 + n}")
        return time.perf_counter() - begin

    called: list[float] = []
    with ThreadPoolExecutor(count) as pool:
        times = sorted(pool.map(up, range(count)))
    print(
        f"{count:2} at once: start returned {max(called):5.2f} s, SSH first {times[0]:5.2f} s, last {times[-1]:5.2f} s,"
        f" failed boots {count - len(times)}"
    )
    if count > 1:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda n: cloud.ssh(f"198.18.9.{10 + n}", "cloud-init status --wait"), range(count)))
        time.sleep(5)
        groups = [HostGroups(Names.of(cloud.state_dir).cgroup, host.instance_id) for host in hosts]
        charged, shares = sorted(map(charged_mib, groups)), sorted(map(proportional_mib, groups))
        print(f"    charged to an idle host, page cache included: {charged[0]:.0f} to {charged[-1]:.0f} MiB")
        print(f"    share of its processes: {shares[0]:.0f} to {shares[-1]:.0f} MiB (bar: {BAR_MEMORY_MIB} MiB)")
    begin_end = time.perf_counter()
    for host in hosts:
        cloud.remove_host(host)
    print(f"    released in {(time.perf_counter() - begin_end) / count:.2f} s each")


if __name__ == "__main__":
    sys.exit(main())
