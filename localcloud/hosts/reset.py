"""Removing everything that a local cloud left on this machine: `python -m localcloud.hosts.reset STATE_DIR`.

Found by our own names and marks alone, so nothing of another program or another local cloud is touched. Can be run
again and again. `--data` removes disks, private images and NAS data too.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from hpc.errors import HpcError
from localcloud.hosts import cgroups, namespaces, routes
from localcloud.hosts.commands import run, run_json
from localcloud.hosts.disks import mounts_below, mounts_named, unmount_below
from localcloud.hosts.locks import file_lock
from localcloud.hosts.naming import Names
from localcloud.hosts.processes import Process

_PROPAGATE = Path("/run/systemd/nspawn/propagate")


def reset(state_dir: Path, *, data: bool = False) -> tuple[str, ...]:
    """Remove hosts, mounts, namespaces, links, routes, filters and control groups; returns what there was.

    Args:
        state_dir: state folder of the local cloud; it need not exist any more.
        data: also remove disks, private images and NAS data.

    Raises:
        CannotRunError: HPC852, a running API server uses the folder.
    """
    folder = state_dir / "hosts"
    if not folder.exists():
        return _reset(state_dir, data=False)
    with file_lock(folder / "lock", wait=False, busy="the local cloud of this state folder is running"):
        return _reset(state_dir, data=data)


def leftovers(state_dir: Path) -> tuple[str, ...]:
    """What there is of the local cloud in this machine's kernel, one line each."""
    names = Names.of(state_dir)
    found = [f"host {name}" for name in cgroups.children(names.cgroup)]
    mounts = {*mounts_below((state_dir / "hosts").resolve()), *mounts_named(names.namespace_prefix)}
    found += [f"mount {point}" for point in sorted(mounts)]
    found += [f"network namespace {name}" for name in namespaces.listed(names.namespace_prefix)]
    found += [f"link {name}" for name in _links(names)]
    found += [f"route {route.destination}" for route in sorted(routes.present_routes(names), key=str)]
    found += [f"filter table {names.table}"] if _has_table(names) else []
    found += [f"control group {path}" for path in _parents(names)]
    return tuple(found)


def _reset(state_dir: Path, *, data: bool) -> tuple[str, ...]:
    names = Names.of(state_dir)
    found = leftovers(state_dir)
    for instance_id in cgroups.children(names.cgroup):
        groups = cgroups.HostGroups(names.cgroup, instance_id)
        for pid in groups.processes():
            if (process := Process.of(pid)) is not None:
                process.kill()
        groups.remove()
        if (_PROPAGATE / instance_id).is_dir():
            (_PROPAGATE / instance_id).rmdir()
    for point in (state_dir / "hosts", *mounts_named(names.namespace_prefix)):
        unmount_below(point)
    for link in _links(names):
        run(["ip", "link", "delete", link], check=False)
    for name in namespaces.listed(names.namespace_prefix):
        namespaces.delete(name)
    routes.apply_routes(names, frozenset())
    if _has_table(names):
        run(["nft", "delete", "table", "ip", names.table])
    cgroups.remove_parent(names.cgroup)
    for record in (state_dir / "hosts/records").glob("*.json"):
        record.unlink()
    if data:
        shutil.rmtree(state_dir / "hosts", ignore_errors=True)
        shutil.rmtree(state_dir / "nas", ignore_errors=True)
    return found


def _links(names: Names) -> tuple[str, ...]:
    rows = run_json(["ip", "-j", "link", "show"])
    return tuple(row["ifname"] for row in rows if row["ifname"].startswith(names.uplink_prefix))


def _has_table(names: Names) -> bool:
    return bool(run(["nft", "list", "table", "ip", names.table], check=False))


def _parents(names: Names) -> tuple[Path, ...]:
    return tuple(path for root in cgroups.hierarchies() if (path := root / names.cgroup).is_dir())


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser("python -m localcloud.hosts.reset", description="Remove what a crashed run left.")
    parser.add_argument("state_dir", type=Path)
    parser.add_argument("--data", action="store_true", help="remove disks, private images and NAS data too")
    chosen = parser.parse_args()
    try:
        removed = reset(chosen.state_dir, data=chosen.data)
    except HpcError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    for line in removed or ("nothing was left",):
        print(line)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
