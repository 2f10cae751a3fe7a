"""Rules on scheduler settings, MPI stacks, users, keys and tags."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.problems import closest
from hpc.spec.rules.context import Context, listed
from hpc.spec.software import OWNED_PARAMETERS

#: Tags that a resource can have, and those of them that the program sets (cluster, role, pool, node).
MOST_TAGS = 20
OWN_TAGS = 4

_ACCOUNTS = """
root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats nobody adm
shutdown halt operator ftp systemd-network systemd-resolve systemd-timesync systemd-coredump dbus messagebus
polkitd sshd chrony _apt tss rpc rpcuser nfsnobody statd slurm munge mysql mariadb admin ubuntu rocky debian
ecs-user hpc
"""

#: Accounts that the distributions, Slurm, MUNGE, MariaDB and the cloud's images bring along.
SYSTEM_ACCOUNTS = frozenset(_ACCOUNTS.split())

_KEY_TYPES = frozenset(
    (
        "ssh-ed25519",
        "ssh-rsa",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    )
)
_LEAST_RSA_BITS = 2048


def slurm_parameters(context: Context) -> Iterator[Finding]:
    """HPC121, HPC125: further lines of slurm.conf are the user's to set, and stand once."""
    seen: set[str] = set()
    for key, value in context.spec.slurm.parameters.items():
        path = f"slurm.parameters.{key}"
        if key.lower() in OWNED_PARAMETERS:
            yield finding("HPC121", path, value, f"{key} follows from the rest of the stack file")
        if key.lower() in seen:
            yield finding("HPC125", path, value, f"{key} is given already in other letters")
        seen.add(key.lower())


def default_partition(context: Context) -> Iterator[Finding]:
    """HPC122: the default partition is a pool."""
    name, pools = context.spec.slurm.default_partition, [pool.name for pool in context.spec.pools]
    if name is not None and name not in pools:
        meant = closest(name, pools)
        fix = f"write {meant}" if meant else f"use one of: {listed(pools)}"
        yield finding("HPC122", "slurm.default_partition", name, f"there is no pool {name}", fix)


def mpi_stacks(context: Context) -> Iterator[Finding]:
    """HPC105, HPC123: MPI stacks stand once, the default among them."""
    mpi = context.spec.mpi
    for index, stack in enumerate(mpi.stacks):
        if stack in mpi.stacks[:index]:
            yield finding("HPC105", f"mpi.stacks[{index}]", str(stack), f"{stack} stands twice")
    if mpi.default not in mpi.stacks:
        installed = listed(list(mpi.stacks)) or "nothing"
        yield finding("HPC123", "mpi.default", str(mpi.default), f"{mpi.default} is not installed, but {installed}")


def users(context: Context) -> Iterator[Finding]:
    """HPC105, HPC116: user accounts are new ones and stand once."""
    seen: set[str] = set()
    for index, name in enumerate(context.spec.access.users):
        path = f"access.users[{index}]"
        if name in seen:
            yield finding("HPC105", path, name, f"{name} stands twice")
        seen.add(name)
        if name in SYSTEM_ACCOUNTS or name.startswith("systemd-"):
            yield finding("HPC116", path, name, f"{name} is an account of the system")


def _fields(blob: bytes) -> list[bytes]:
    """The length-prefixed fields of an SSH key (RFC 4251, section 5).

    Raises:
        ValueError: the blob ends within a field.
    """
    out, at = [], 0
    while at < len(blob):
        end = at + 4 + int.from_bytes(blob[at : at + 4], "big")
        if at + 4 > len(blob) or end > len(blob):
            raise ValueError
        out.append(blob[at + 4 : end])
        at = end
    return out


def _fault(key: str) -> str | None:
    """What is wrong with a public key, or None."""
    written, encoded = key.split(" ")[:2]
    if written not in _KEY_TYPES:
        return f"the type {written} is not accepted"
    try:
        fields = _fields(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError):
        return "its base64 text is damaged or cut short"
    if not fields or fields[0] != written.encode():
        return f"it says {written}, but something else is inside"
    least = {"ssh-rsa": 3, "ssh-ed25519": 2}.get(written, 3)
    if len(fields) < least:
        return "it is cut short"
    if written == "ssh-ed25519" and len(fields[1]) != 32:
        return "it is cut short"
    if written == "ssh-rsa" and int.from_bytes(fields[2], "big").bit_length() < _LEAST_RSA_BITS:
        return f"RSA keys need {_LEAST_RSA_BITS} bits"
    return None


def ssh_keys(context: Context) -> Iterator[Finding]:
    """HPC114: OpenSSH accepts the public keys."""
    for index, key in enumerate(context.spec.access.ssh_keys):
        if fault := _fault(key):
            shown = f"{key[:40]}..." if len(key) > 43 else key
            yield finding("HPC114", f"access.ssh_keys[{index}]", shown, f"the key cannot be used: {fault}")


def tags(context: Context) -> Iterator[Finding]:
    """HPC112, HPC113: tags leave the program's alone and fit on a resource."""
    spec = context.spec
    own = [("tags", spec.tags), *((f"{path}.tags", pool.tags) for path, pool in context.pools)]
    for path, given in own:
        for key, value in given.items():
            if key.lower().startswith("hpc:"):
                yield finding("HPC112", f"{path}.{key}", value, f"{key} begins with hpc:")
        together = len({*spec.tags, *given}) + OWN_TAGS
        if together > MOST_TAGS and given:
            text = f"{together} tags with those of the program; a resource can have {MOST_TAGS}"
            yield finding("HPC113", path, None, text, f"use at most {MOST_TAGS - OWN_TAGS} tags")


RULES = (slurm_parameters, default_partition, mpi_stacks, users, ssh_keys, tags)
