"""The bootstrap bundle: everything the nodes need that is known before resources exist, in one archive.

Equal input gives an equal archive, byte for byte: its checksum decides whether nodes have to be set up again.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import shlex
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hpc.catalog import Catalog
from hpc.paths import PROJECT_ROOT
from hpc.slurm import layout
from hpc.slurm.config import cgroup_conf, slurm_conf, slurmdbd_conf, topology_conf
from hpc.slurm.mpi import MODULES, VERSIONS, default_module, fabric_settings, module_file
from hpc.slurm.profile import CLOUD, HostProfile
from hpc.slurm.requirements import FILE as REQUIREMENTS
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import login_names, management_names

#: Scripts that run on nodes, relative to `scripts/`.
_SCRIPT_FOLDERS = ("bootstrap", "mpi")


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle on disk.

    Attributes:
        path: the archive, named after its checksum.
        digest: SHA-256 of the archive, hexadecimal.
        parts: SHA-256, first 12 digits, by part (`slurm.conf`, `scripts`, `elastic`, ...): which of them changed says
            why nodes are set up again.
    """

    path: Path
    digest: str
    parts: Mapping[str, str]

    def triggers(self) -> list[str]:
        """One `part checksum` entry per part, sorted: the preview shows which of them differs."""
        return [f"{part} {digest}" for part, digest in sorted(self.parts.items())]


def build_bundle(spec: ClusterSpec, catalog: Catalog, target: Path, profile: HostProfile = CLOUD) -> Bundle:
    """Write the bundle into the folder `target` (made if missing) and say what is in it.

    Args:
        spec: the cluster.
        catalog: cores and memory of the instance types.
        target: folder for the archive `bundle-<checksum>.tar.gz`.
        profile: hosts of the cloud or of the local cloud.

    Raises:
        RefusedError: the configuration cannot be rendered (HPC801 to HPC805).
    """
    files = bundle_files(spec, catalog, profile)
    content = _archive(files)
    digest = hashlib.sha256(content).hexdigest()
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"bundle-{digest[:16]}.tar.gz"
    if not path.exists():
        part = path.with_suffix(".part")
        part.write_bytes(content)
        part.replace(path)
    return Bundle(path, digest, _parts(files))


def bundle_files(spec: ClusterSpec, catalog: Catalog, profile: HostProfile = CLOUD) -> dict[str, bytes]:
    """Content of the bundle: path in the cluster folder to bytes."""
    texts = {
        "etc/slurm/slurm.conf": slurm_conf(spec, catalog, profile),
        "etc/slurm/cgroup.conf": cgroup_conf(spec, profile),
        "etc/slurmdbd.conf": slurmdbd_conf(spec),
        "etc/cluster.env": cluster_env(spec, profile),
        "etc/authorized_keys": "".join(f"{key}\n" for key in spec.access.ssh_keys),
        "modulefiles/mpi": default_module(spec),
        "elastic/requirements.txt": REQUIREMENTS.read_text(),
    }
    if topology := topology_conf(spec):
        texts["etc/slurm/topology.conf"] = topology
    for stack in spec.mpi.stacks:
        texts[f"modulefiles/{MODULES[stack]}/{VERSIONS[stack]}"] = module_file(stack, spec, profile)
        for pool in spec.pools:
            settings = fabric_settings(stack, pool.interconnect, spec, profile)
            texts[f"etc/fabric/{MODULES[stack]}.{pool.name}"] = "".join(f"{k}={v}\n" for k, v in settings.items())
    files = {name: text.encode() for name, text in texts.items()}
    for folder in _SCRIPT_FOLDERS:
        files |= _tree(PROJECT_ROOT / "scripts" / folder, f"{'scripts/' if folder != 'bootstrap' else ''}{folder}")
    files["elastic/hpc/__init__.py"] = (PROJECT_ROOT / "hpc" / "__init__.py").read_bytes()
    files |= _tree(PROJECT_ROOT / "hpc" / "elastic", "elastic/hpc/elastic")
    return dict(sorted(files.items()))


def cluster_env(spec: ClusterSpec, profile: HostProfile = CLOUD) -> str:
    """Settings of the scripts, as shell assignments."""
    homes = next((storage.mount for storage in spec.storage if storage.mount == "/home"), None)
    values = {
        "HPC_CLUSTER": spec.name,
        "HPC_PROFILE": profile.name,
        "HPC_MANAGEMENT": " ".join(management_names(spec)),
        "HPC_LOGIN": " ".join(login_names(spec)),
        "HPC_BACKUP": "yes" if spec.management.backup else "no",
        # Homes are on shared storage in any case: MPI jobs want their files on every node.
        "HPC_HOMES": homes or f"{layout.software_storage(spec).mount}/home",
        "HPC_USERS": " ".join(spec.access.users),
        "HPC_MPI_PORTS": f"{spec.network.mpi_ports.first} {spec.network.mpi_ports.last}",
        "HPC_MPI_STACKS": " ".join(f"{MODULES[stack]}/{VERSIONS[stack]}" for stack in spec.mpi.stacks),
        # Pool and number of its last node: every name that slurm.conf has.
        "HPC_NODES": " ".join(f"{pool.name}/{pool.max}" for pool in spec.pools),
        "HPC_NODE_PATTERNS": " ".join(["management-*", "login-*", *(f"{pool.name}-*" for pool in spec.pools)]),
    }
    for pool in spec.pools:
        values[f"HPC_POOL_{pool.name.replace('-', '_')}"] = pool.interconnect.value
    return "".join(f"{key}={shlex.quote(value)}\n" for key, value in values.items())


#: Files of the repository that no node reads: a change of them must not run the bootstrap again.
_NOT_FOR_NODES = frozenset({".gitkeep", "codes.toml"})


def _tree(folder: Path, prefix: str) -> dict[str, bytes]:
    return {
        f"{prefix}/{path.relative_to(folder)}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.name not in _NOT_FOR_NODES
    }


def _parts(files: Mapping[str, bytes]) -> dict[str, str]:
    sums: dict[str, hashlib._Hash] = {}
    for name, content in files.items():
        first, _, rest = name.partition("/")
        part = rest.rpartition("/")[2] if first == "etc" and not rest.startswith("fabric/") else first
        part = {"bootstrap": "scripts", "etc": "fabric"}.get(part, part)
        sums.setdefault(part, hashlib.sha256()).update(name.encode() + b"\0" + content)
    return {part: digest.hexdigest()[:12] for part, digest in sums.items()}


def _archive(files: Mapping[str, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if content.startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(content))
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as stream:
        stream.write(plain.getvalue())
    return packed.getvalue()
