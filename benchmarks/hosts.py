"""Instance hosts: building the public image, from start to SSH for 1, 3 and 16 at once, memory of an idle host.

Needs root and Linux namespaces. The baseline is systemd alone: the same image booted without network, metadata and
cloud-init, until its last unit is up.
"""

from __future__ import annotations

import os
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

BAR_MEMORY_MIB = 120


def main() -> int:
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
