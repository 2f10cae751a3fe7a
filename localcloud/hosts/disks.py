"""System disks and images: an overlay of the image's layers and one folder that the instance writes to."""

from __future__ import annotations

import json
import re
import shutil
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from hpc.errors import CannotRunError
from localcloud.hosts.commands import run

_MOUNTS = Path("/proc/self/mountinfo")


class Disks:
    """System disks and private images of one local cloud.

    Args:
        folder: where they are kept.
        public_image: returns the folder of the public image; asked once a disk needs it.
        mount_prefix: start of the source name of each mount, by which reset finds it wherever the folder has gone.
    """

    def __init__(self, folder: Path, public_image: Callable[[], Path], mount_prefix: str) -> None:
        self._mount_prefix = mount_prefix
        self._folder = folder
        self._public_image = public_image
        for name in ("disks", "images", "trash"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    # -- disks ---------------------------------------------------------------------------------------------------------

    def root(self, instance_id: str) -> Path:
        """Mount point of the instance's root file system."""
        return self._disk(instance_id) / "root"

    def exists(self, instance_id: str) -> bool:
        """Whether the instance has a disk."""
        return (self._disk(instance_id) / "layers.json").exists()

    def listed(self) -> tuple[str, ...]:
        """Ids of the instances that have a folder here."""
        return tuple(sorted(entry.name for entry in (self._folder / "disks").iterdir()))

    def mount(self, instance_id: str, image_id: str) -> Path:
        """Mount the instance's root file system, on a new disk if it has none; returns the mount point.

        Raises:
            CannotRunError: HPC861, the layers of the disk's image are gone.
        """
        disk = self._disk(instance_id)
        record = disk / "layers.json"
        if not record.exists():
            self._discard(disk)
            for name in ("upper", "root"):
                (disk / name).mkdir(parents=True)
            (disk / "upper").chmod(0o755)  # becomes the mode of `/`, whatever this process's umask
            record.write_text(json.dumps([str(layer) for layer in self._layers(image_id)]))
        layers = [Path(layer) for layer in json.loads(record.read_text())]
        for layer in layers:
            if not layer.is_dir():
                raise CannotRunError(
                    f"layer {layer} of the disk of {instance_id} is gone",
                    code="HPC861",
                    fix="release the instance and start a new one",
                )
        self.unmount(instance_id)
        # The overlay keeps "not safely unmounted" in its work folder; disks here are not worth a sync per write.
        work = disk / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        options = f"lowerdir={':'.join(map(str, layers))},upperdir={disk / 'upper'},workdir={work},volatile"
        run(["mount", "-t", "overlay", self._mount_prefix + instance_id, "-o", options, str(disk / "root")])
        return disk / "root"

    def unmount(self, instance_id: str) -> None:
        """Unmount the instance's root file system and what is mounted below it."""
        unmount_below(self.root(instance_id))

    def remove(self, instance_id: str) -> None:
        """Remove the disk; the files go in the background."""
        self.unmount(instance_id)
        self._discard(self._disk(instance_id))

    # -- images --------------------------------------------------------------------------------------------------------

    def keep_as_image(self, instance_id: str, image_id: str) -> None:
        """Copy what the instance wrote as a layer on top of the layers it was started from."""
        disk, image = self._disk(instance_id), self._folder / "images" / image_id
        temporary = self._folder / "trash" / uuid.uuid4().hex
        temporary.mkdir()
        run(["cp", "-a", "--reflink=auto", str(disk / "upper"), str(temporary / "layer")])
        etc = temporary / "layer/etc"
        if not etc.is_dir():
            etc.mkdir()
            etc.chmod(0o755)
        (etc / "machine-id").unlink(missing_ok=True)
        (etc / "machine-id").touch()
        (etc / "machine-id").chmod(0o444)  # empty: each host of the image gets its own
        shutil.copyfile(disk / "layers.json", temporary / "layers.json")
        self._discard(image)
        temporary.rename(image)

    def remove_image(self, image_id: str) -> None:
        """Remove a private image (an unknown one is no error). Disks made from it keep their layer until released."""
        image = self._folder / "images" / image_id
        layer = str(image / "layer")
        users = [*self._folder.glob("disks/*/layers.json"), *self._folder.glob("images/*/layers.json")]
        if any(layer in json.loads(file.read_text()) for file in users):
            (image / "deleted").touch()
        else:
            self._discard(image)

    def _layers(self, image_id: str) -> list[Path]:
        image = self._folder / "images" / image_id
        if not (image / "layers.json").exists():
            return [self._public_image()]
        return [image / "layer", *(Path(layer) for layer in json.loads((image / "layers.json").read_text()))]

    def _disk(self, instance_id: str) -> Path:
        return self._folder / "disks" / instance_id

    def _discard(self, folder: Path) -> None:
        if folder.exists():
            trash = self._folder / "trash" / uuid.uuid4().hex
            folder.rename(trash)
            threading.Thread(target=shutil.rmtree, args=(trash,), kwargs={"ignore_errors": True}, daemon=True).start()

    def empty_trash(self) -> None:
        """Remove what a killed process had not finished removing."""
        for entry in (self._folder / "trash").iterdir():
            shutil.rmtree(entry, ignore_errors=True)
        for mark in self._folder.glob("images/*/deleted"):
            self.remove_image(mark.parent.name)


def mounts_below(folder: Path) -> tuple[Path, ...]:
    """Mount points at and below a folder, the deepest first."""
    inside = [point for point, _ in _mounts() if point == folder or folder in point.parents]
    return tuple(sorted(inside, key=lambda point: len(point.parts), reverse=True))


def mounts_named(prefix: str) -> tuple[Path, ...]:
    """Mount points whose source name begins with `prefix`, wherever they are."""
    return tuple(point for point, source in _mounts() if source.startswith(prefix))


def unmount_below(folder: Path) -> None:
    """Unmount everything at and below a folder; what is busy is detached and goes with its last user."""
    for point in mounts_below(folder.resolve()):
        run(["umount", str(point)], check=False)
    for point in mounts_below(folder.resolve()):
        run(["umount", "-l", str(point)], check=False)


def _mounts() -> list[tuple[Path, str]]:
    """Mount point and source name of each mount (proc(5), mountinfo)."""
    found = []
    for line in _MOUNTS.read_text().splitlines():
        point = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), line.split()[4])
        found.append((Path(point), line.partition(" - ")[2].split()[1]))
    return found
