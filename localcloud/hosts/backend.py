"""The host back end: brings instances, networks and services of the local cloud into being on this machine."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hpc.errors import CannotRunError
from hpc.paths import cache_dir
from localcloud.contracts import Host, HostState, MetadataSource, Network, VSwitchNet
from localcloud.hosts import cgroups, container, namespaces, support, sysctl
from localcloud.hosts.disks import Disks
from localcloud.hosts.image import ensure_image
from localcloud.hosts.locks import file_lock
from localcloud.hosts.mirror import MirrorService
from localcloud.hosts.naming import Names
from localcloud.hosts.nas import FileSystems
from localcloud.hosts.network import VpcNetworks
from localcloud.hosts.processes import Process
from localcloud.hosts.records import HostRecord, Records
from localcloud.hosts.services import Services, token_key
from localcloud.hosts.upstreams import read_upstreams

_log = logging.getLogger("localcloud.hosts")
_CONSOLE_BYTES = 64 * 1024
_CONSOLE_LIMIT = 1 << 20


class NspawnBackend:
    """A `HostBackend` whose hosts are systemd containers.

    Args:
        state_dir: folder of the local cloud; hosts, disks, images and NAS are kept in it.
        api_port: port of the API server on 127.0.0.1, reachable from hosts as `ecs.<region>.aliyuncs.com:80`.
        progress: called with a line while programs are installed and while the public image is built.
    """

    real = True

    def __init__(
        self, state_dir: Path, *, api_port: int | None = None, progress: Callable[[str], None] = _log.info
    ) -> None:
        self._folder = state_dir / "hosts"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._names = Names.of(state_dir)
        self._disks = Disks(self._folder, lambda: ensure_image(progress), self._names.namespace_prefix)
        self._records = Records(self._folder / "records")
        self._file_systems = FileSystems(state_dir / "nas")
        self._networks = VpcNetworks(self._names)
        self._api_port = api_port
        self._progress = progress
        self._services: Services | None = None
        self._on_exit: Callable[[str], None] = lambda _: None
        self._held = ExitStack()
        self._network_lock = threading.Lock()
        self._vswitches: Mapping[str, VSwitchNet] = {}
        self._guard = threading.Lock()
        self._instance_locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._hosts: dict[str, HostRecord] = {}
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    # -- life of the back end ------------------------------------------------------------------------------------------

    def adopt(
        self, hosts: Sequence[Host], source: MetadataSource, on_exit: Callable[[str], None]
    ) -> Mapping[str, HostState]:
        """Find the hosts that live, remove what belongs to no instance, and get ready to serve.

        Raises:
            CannotRunError: HPC852, another process works on this state folder; HPC856, no hosts on this machine.
        """
        if why := support.prepare(self._folder, self._progress):
            raise support.refusal(why)
        self._held.enter_context(
            file_lock(self._folder / "lock", wait=False, busy="another local cloud works on this state folder")
        )
        sysctl.raise_limits()
        self._on_exit = on_exit
        self._services = Services(
            source,
            self._file_systems,
            MirrorService(cache_dir() / "mirror", read_upstreams()),
            token_key(self._folder / "token.key"),
            self._process_of,
            self._api_port,
        )
        wanted = {host.instance_id: host for host in hosts}
        with self._network_lock:
            self._networks.adopt()
        for record in self._records.all():
            if record.host.instance_id in wanted and container.leader(record.loop) is not None:
                self._watch(record)
        self._remove_leftovers(wanted)
        threading.Thread(target=self._disks.empty_trash, name="trash", daemon=True).start()
        return {
            instance_id: HostState.RUNNING if instance_id in self._hosts else HostState.STOPPED
            for instance_id in wanted
            if instance_id in self._hosts or self._disks.exists(instance_id)
        }

    def apply(self, network: Network) -> None:
        """Make routes, namespaces, bridges, filters, names and mount targets what `network` says."""
        with self._network_lock:
            self._networks.apply(network)
            self._vswitches = {vswitch.vswitch_id: vswitch for vswitch in network.vswitches}
            if self._services is not None:
                vpc_ids = {vswitch.vpc_id for vswitch in network.vswitches}
                self._services.apply(network, {vpc_id: self._networks.namespace(vpc_id) for vpc_id in sorted(vpc_ids)})

    def close(self) -> None:
        """Stop the services; hosts are left as they are."""
        if self._services is not None:
            self._services.close()
            self._services = None
        with self._guard:
            self._hosts.clear()  # whatever becomes of the hosts from now on is not this process's business
        self._held.close()

    # -- operations on an instance -------------------------------------------------------------------------------------

    def start(self, host: Host) -> None:
        """Boot the instance; returns once it boots, not once it is up.

        Raises:
            CannotRunError: HPC853, its vSwitch is not in the network that was applied last.
        """
        with self._locked(host.instance_id):
            if self._alive(host.instance_id) is None:
                self._boot(host)

    def stop(self, instance_id: str, *, force: bool) -> None:
        """Power off and wait until it is off: cleanly within 20 s, or else at once."""
        with self._locked(instance_id):
            self._end(instance_id, force=force)

    def reboot(self, instance_id: str, *, force: bool) -> None:
        """Reboot in place; a host that does not react within 20 s is powered off and on."""
        with self._locked(instance_id):
            record = self._alive(instance_id)
            if record is None:
                return
            if force or not container.reboot(record.loop):
                self._end(instance_id, force=True)
                self._boot(record.host)

    def release(self, instance_id: str) -> None:
        """End the host at once and remove its disk and its console."""
        with self._locked(instance_id):
            self._end(instance_id, force=True)
            self._disks.remove(instance_id)
            self._console(instance_id).unlink(missing_ok=True)
        with self._guard:
            self._instance_locks.pop(instance_id, None)

    def create_image(self, instance_id: str, image_id: str) -> None:
        """Keep the disk as an image.

        Raises:
            CannotRunError: HPC862, the instance has no disk.
        """
        with self._locked(instance_id):
            if not self._disks.exists(instance_id):
                raise CannotRunError(
                    f"instance {instance_id} has no disk on this machine",
                    code="HPC862",
                    fix="start the instance once before an image is made from it",
                )
            self._disks.keep_as_image(instance_id, image_id)

    def delete_image(self, image_id: str) -> None:
        """Forget an image made by `create_image`."""
        self._disks.remove_image(image_id)

    def delete_file_system(self, file_system_id: str) -> None:
        """Remove the directory behind a NAS file system."""
        self._file_systems.remove(file_system_id)

    def console_output(self, instance_id: str) -> str:
        """The last 64 KiB of what the host wrote to its console; "" if there is none."""
        path = self._console(instance_id)
        if not path.exists():
            return ""
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _CONSOLE_BYTES))
            return file.read().decode(errors="replace")

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _boot(self, host: Host) -> None:
        vswitch = self._vswitches.get(host.vswitch_id)
        if vswitch is None:
            raise CannotRunError(
                f"vSwitch {host.vswitch_id} of {host.instance_id} is not in the network",
                code="HPC853",
                fix="apply the network before the instance starts",
            )
        self._clear(host.instance_id, host)
        root = self._disks.mount(host.instance_id, host.image_id)
        with self._network_lock:
            namespace = self._networks.plug(host, vswitch)
        groups = cgroups.HostGroups(self._names.cgroup, host.instance_id)
        groups.create(memory_mib=host.memory_mib, vcpus=host.vcpus)
        console = self._console(host.instance_id)
        if console.exists() and console.stat().st_size > _CONSOLE_LIMIT:
            console.write_text(self.console_output(host.instance_id))
        child = container.spawn(host, root, namespace, groups.folders, console)
        loop = Process.of(child.pid)
        if loop is None:
            child.wait()
            self._clear(host.instance_id, host)
            raise CannotRunError(
                f"the host of {host.instance_id} ended at once with exit code {child.returncode}",
                code="HPC863",
                fix="read the console output of the instance",
            )
        self._children[child.pid] = child
        record = HostRecord(host, loop)
        self._records.write(record)
        self._watch(record)

    def _end(self, instance_id: str, *, force: bool) -> None:
        with self._guard:
            record = self._hosts.pop(instance_id, None)  # from now on its end is no surprise to the watcher
        if record is not None and (force or not container.power_off(record.loop)):
            container.kill(record.loop)
        self._clear(instance_id, record.host if record else None)

    def _clear(self, instance_id: str, host: Host | None) -> None:
        """Take away everything of a host that does not live but its disk."""
        groups = cgroups.HostGroups(self._names.cgroup, instance_id)
        for pid in groups.processes():
            if (process := Process.of(pid)) is not None:
                process.kill()
        self._disks.unmount(instance_id)
        with self._network_lock:
            if host is not None:
                self._networks.unplug(host)
            else:
                namespaces.delete(self._names.namespace(instance_id))
        groups.remove()
        propagate = Path("/run/systemd/nspawn/propagate") / instance_id
        if propagate.is_dir():
            propagate.rmdir()
        self._records.remove(instance_id)

    def _watch(self, record: HostRecord) -> None:
        with self._guard:
            self._hosts[record.host.instance_id] = record
        name = f"watch-{record.host.instance_id}"
        threading.Thread(target=self._wait_for_end, args=(record,), name=name, daemon=True).start()

    def _wait_for_end(self, record: HostRecord) -> None:
        record.loop.wait(None)
        if (child := self._children.pop(record.loop.pid, None)) is not None:
            child.wait()
        instance_id = record.host.instance_id
        with self._guard:
            if self._hosts.get(instance_id) != record:
                return
        with self._locked(instance_id):
            with self._guard:
                if self._hosts.get(instance_id) != record:
                    return
                del self._hosts[instance_id]
            self._clear(instance_id, record.host)
        _log.info("%s powered itself off", instance_id)
        self._on_exit(instance_id)

    def _remove_leftovers(self, wanted: Mapping[str, Host]) -> None:
        prefix = self._names.namespace_prefix
        found = {name.removeprefix(prefix) for name in namespaces.listed(prefix)}
        found = {name for name in found if name.startswith("i-")} | set(cgroups.children(self._names.cgroup))
        found |= {record.host.instance_id for record in self._records.all()} | set(self._disks.listed())
        for instance_id in sorted(found - self._hosts.keys()):
            self._clear(instance_id, wanted.get(instance_id))
            if instance_id not in wanted:
                self._disks.remove(instance_id)
                self._console(instance_id).unlink(missing_ok=True)

    def _alive(self, instance_id: str) -> HostRecord | None:
        with self._guard:
            record = self._hosts.get(instance_id)
        return record if record is not None and record.loop.alive else None

    def _process_of(self, instance_id: str) -> int | None:
        record = self._alive(instance_id)
        init = container.leader(record.loop) if record else None
        return init.pid if init else None

    def _console(self, instance_id: str) -> Path:
        return self._folder / f"{instance_id}.console"

    @contextmanager
    def _locked(self, instance_id: str) -> Iterator[None]:
        with self._guard:
            lock = self._instance_locks[instance_id]
        with lock:
            yield
