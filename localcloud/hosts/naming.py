"""Names of everything a local cloud makes on this machine. All begin with `alihpc`, so that leftovers can be told."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

PREFIX = "alihpc"


def _short(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


@dataclass(frozen=True, slots=True)
class Names:
    """Names for one state folder; two local clouds on one machine do not meet.

    Attributes:
        tag: five hexadecimal digits made from the folder's path.
    """

    tag: str

    @classmethod
    def of(cls, state_dir: Path) -> Names:
        """Names of the local cloud whose state is in `state_dir`."""
        return cls(_short(str(state_dir.resolve()), 5))

    @property
    def namespace_prefix(self) -> str:
        """Start of the name of each network namespace."""
        return f"{PREFIX}-{self.tag}-"

    def namespace(self, resource_id: str) -> str:
        """Network namespace of a VPC or an instance."""
        return self.namespace_prefix + resource_id

    @property
    def uplink_prefix(self) -> str:
        """Start of the name of each link between this machine and a VPC namespace."""
        return f"{PREFIX}{self.tag}"

    def uplink(self, number: int) -> str:
        """Link to the VPC namespace with this number (at most 9999, as Linux allows 15 characters)."""
        return f"{self.uplink_prefix}{number}"

    @property
    def table(self) -> str:
        """nftables table in this machine's own network namespace."""
        return f"{PREFIX}_{self.tag}"

    @property
    def cgroup(self) -> str:
        """Control group that holds the hosts' groups."""
        return f"{PREFIX}-{self.tag}"

    @property
    def metric(self) -> int:
        """Metric of the `unreachable` routes: tells them from those of another local cloud, and loses to any route."""
        return 0x40000000 + int(self.tag, 16)

    @staticmethod
    def bridge(vswitch_id: str) -> str:
        """Bridge of a vSwitch, inside its VPC's namespace."""
        return f"vsw{_short(vswitch_id, 11)}"

    @staticmethod
    def port(instance_id: str) -> str:
        """The bridge's end of an instance's link, inside its VPC's namespace."""
        return f"eni{_short(instance_id, 11)}"
