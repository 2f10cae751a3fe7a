"""One host as a process tree: systemd-nspawn in the host's namespaces and control groups, watched over by a shell loop.

The loop is there because systemd-nspawn ends with 133 when the host reboots and wants to be run again; being a program
of its own in a session of its own, it goes on when the API server dies. Each boot gets a time namespace whose boot time
is now: slurmctld ignores the registration of a node that claims to have booted before it was resumed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from localcloud.contracts import Host
from localcloud.hosts import namespaces
from localcloud.hosts.processes import Process, children

_LOOP = """
for folder in $ALIHPC_CGROUPS; do echo $$ > "$folder/cgroup.procs" || exit 1; done
while :; do
  read -r up _ < /proc/uptime
  unshare --time --boottime "-${up%.*}" systemd-nspawn "$@"
  code=$?
  [ "$code" = 133 ] || exit "$code"
done
"""
# systemd(1): what its process 1 does at these signals.
_POWEROFF = int(signal.SIGRTMIN) + 4
_REBOOT = int(signal.SIGRTMIN) + 5
_STOP_S = 20.0
_KILL_S = 30.0
_POLL_S = 0.05


def nspawn_arguments(host: Host, root: Path, namespace: str) -> list[str]:
    """Arguments of systemd-nspawn(1) for a host."""
    machine_id = uuid.uuid5(uuid.NAMESPACE_DNS, f"{host.instance_id}.ecs.aliyuncs.com")
    return [
        "--quiet",
        f"--directory={root}",
        f"--machine={host.instance_id}",
        f"--hostname={host.hostname}",
        f"--uuid={machine_id}",
        f"--network-namespace-path={namespaces.path(namespace)}",
        "--register=no",
        "--keep-unit",
        "--capability=CAP_NET_ADMIN,CAP_IPC_LOCK",
        "--rlimit=RLIMIT_MEMLOCK=infinity",
        "--rlimit=RLIMIT_NOFILE=1048576",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--console=read-only",
        "--kill-signal=SIGRTMIN+4",
        "--boot",
        "systemd.show_status=1",
    ]


def spawn(host: Host, root: Path, namespace: str, cgroups: Sequence[Path], console: Path) -> subprocess.Popen[bytes]:
    """Boot a host; returns the watching loop, which lives as long as the host.

    Args:
        host: the instance.
        root: mount point of its root file system.
        namespace: name of its network namespace.
        cgroups: its control group in each hierarchy.
        console: file that gets what it writes to its console.
    """
    environment = {
        "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
        "LANG": "C.UTF-8",
        "SYSTEMD_NSPAWN_LOCK": "0",
        # Network settings are the host's own, in its own namespace, and an instance may change them.
        "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network",
        "ALIHPC_CGROUPS": " ".join(map(str, cgroups)),
    }
    with console.open("ab") as output:
        return subprocess.Popen(
            ["sh", "-c", _LOOP, "alihpc-host", *nspawn_arguments(host, root, namespace)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd="/",
            umask=0o022,
            start_new_session=True,
        )


def leader(loop: Process) -> Process | None:
    """Process 1 of the host as this machine sees it, or None while (or after) there is none."""
    if not loop.alive:
        return None
    for nspawn in children(loop.pid):
        for pid in children(nspawn):
            if _is_init(pid):
                return Process.of(pid)
    return None


def power_off(loop: Process) -> bool:
    """Ask the host to shut down; False if it did not within 20 s."""
    init = leader(loop)
    if init is not None:
        init.kill(_POWEROFF)
    return loop.wait(_STOP_S)


def kill(loop: Process) -> None:
    """End the host at once: with process 1 of a process namespace everything in it ends."""
    deadline = time.monotonic() + _KILL_S
    while loop.alive and time.monotonic() < deadline:
        init = leader(loop)
        if init is not None:
            init.kill()
        if loop.wait(0.2):
            return
        for pid in children(loop.pid):
            if init is None and (nspawn := Process.of(pid)) is not None:
                nspawn.kill()
    loop.kill()


def reboot(loop: Process) -> bool:
    """Ask the host to reboot; False if it did not begin again within 20 s."""
    before = leader(loop)
    if before is None:
        return False
    before.kill(_REBOOT)
    deadline = time.monotonic() + _STOP_S
    while time.monotonic() < deadline and loop.alive:
        now = leader(loop)
        if now is not None and now != before:
            return True
        time.sleep(_POLL_S)
    return False


def _is_init(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    ids = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
    return len(ids) > 1 and ids[-1] == "1"
