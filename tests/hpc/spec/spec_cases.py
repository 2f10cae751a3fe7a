"""For every code of a rule: the smallest input that breaks it, and its neighbour that does not."""

from __future__ import annotations

import base64
import copy
import re
import struct
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from hpc.catalog import Catalog

#: The catalog without what a user's own refreshes have read.
SHIPPED = Catalog()

BASE: dict[str, Any] = {
    "name": "t",
    "region": "cn-hangzhou",
    "zones": ["cn-hangzhou-j"],
    "network": {"ssh_from": ["203.0.113.0/24"]},
    "pools": [{"name": "mpi", "instance_types": ["ecs.c8ae.4xlarge"]}],
}
TWO_ZONES = {"zones": ["cn-hangzhou-j", "cn-hangzhou-k"]}
ADOPTED = {
    "network.vpc_id": "vpc-abc",
    "network.cidr": "10.1.0.0/16",
    "network.vswitches": {"cn-hangzhou-j": "10.1.0.0/20"},
}


def changed(changes: dict[str, Any], base: dict[str, Any] = BASE) -> dict[str, Any]:
    """The base cluster with values set at paths such as `pools[0].max`."""
    out = copy.deepcopy(base)
    for path, value in changes.items():
        parts = [int(index) if index else key for index, key in re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)]
        at: Any = out
        for part, following in pairwise(parts):
            if isinstance(at, dict):
                at = at.setdefault(part, [] if isinstance(following, int) else {})
            else:
                if part == len(at):
                    at.append({})
                at = at[part]
        if isinstance(at, list) and parts[-1] == len(at):
            at.append(copy.deepcopy(value))
        else:
            at[parts[-1]] = copy.deepcopy(value)
    return out


def public_key(kind: str = "ssh-ed25519", *fields: bytes) -> str:
    """An OpenSSH public key of well-formed fields."""
    blob = b"".join(struct.pack(">I", len(part)) + part for part in (kind.encode(), *(fields or (b"k" * 32,))))
    return f"{kind} {base64.b64encode(blob).decode()} somebody"


class _NoArmImages(Catalog):
    def image(self, os: str, architecture: str) -> Any:
        return None if architecture == "arm64" else super().image(os, architecture)


class _NoPrices(Catalog):
    def price(self, item: str, region: str, charge: Any) -> Any:
        return replace(super().price(item, region, charge), amount=None)


class _SoldInOneZone(Catalog):
    def instance_type(self, name: str) -> Any:
        found = super().instance_type(name)
        return found and replace(found, zones=("cn-hangzhou-k",))


@dataclass(frozen=True)
class Case:
    """A code, where it is reported, what breaks the rule, and the neighbour that keeps it."""

    code: str
    path: str
    bad: dict[str, Any]
    good: dict[str, Any]
    catalog: Catalog = field(default_factory=lambda: SHIPPED)

    def __str__(self) -> str:
        return f"{self.code}-{self.path}"


def _pool(index: int, **values: Any) -> dict[str, Any]:
    return {f"pools[{index}]": {"name": f"p{index}", "instance_types": ["ecs.c8ae.4xlarge"], **values}}


_ARM = "ecs.c8y.4xlarge"
_HPC = "ecs.hpc8ae.32xlarge"
_EXTREME = {"mount": "/s", "kind": "extreme", "capacity_gib": 100}
_RSA_1024 = public_key("ssh-rsa", b"\x01\x00\x01", b"\x00" + b"\xff" * 128)
_RSA_2048 = public_key("ssh-rsa", b"\x01\x00\x01", b"\x00" + b"\xff" * 256)

CASES = (
    # regions and zones
    Case("HPC101", "region", {"region": "cn-hangzou", "zones": ["cn-hangzou-j"]}, {}),
    Case("HPC102", "zones[0]", {"zones": ["cn-beijing-a"]}, {}),
    Case("HPC102", "zones[1]", {"zones": ["cn-hangzhou-j", "cn-hangzhou"]}, TWO_ZONES),
    Case("HPC103", "zones[0]", {"zones": ["cn-hangzhou-z"]}, {}),
    Case("HPC105", "zones[1]", {"zones": ["cn-hangzhou-j", "cn-hangzhou-j"]}, TWO_ZONES),
    Case(
        "HPC105", "pools[0].zones[1]", {"pools[0].zones": ["cn-hangzhou-j"] * 2}, {"pools[0].zones": ["cn-hangzhou-j"]}
    ),
    Case("HPC336", "pools[0].zones[0]", {"pools[0].zones": ["cn-hangzhou-k"]}, {"pools[0].zones": ["cn-hangzhou-j"]}),
    # names
    Case("HPC106", "pools[1].name", _pool(1, name="mpi"), _pool(1)),
    Case("HPC107", "pools[0].name", {"pools[0].name": "all"}, {"pools[0].name": "al"}),
    Case("HPC107", "pools[0].name", {"pools[0].name": "default"}, {"pools[0].name": "defaults"}),
    Case("HPC107", "pools[0].name", {"pools[0].name": "management"}, {"pools[0].name": "manage"}),
    Case("HPC108", "pools[0].name", {"pools[0].name": "login", "login.count": 2}, {"pools[0].name": "login"}),
    # checks, tags, software
    Case("HPC110", "checks.HPC999", {"checks": {"HPC999": "off"}}, {"checks": {"HPC207": "off"}}),
    Case("HPC111", "checks.HPC305", {"checks": {"HPC305": "off"}}, {"checks": {"HPC302": "off"}}),
    Case("HPC112", "tags.hpc:cluster", {"tags": {"hpc:cluster": "x"}}, {"tags": {"hpc-cluster": "x"}}),
    Case("HPC112", "pools[0].tags.HPC:x", {"pools[0].tags": {"HPC:x": "x"}}, {"pools[0].tags": {"x": "x"}}),
    Case("HPC113", "tags", {"tags": {f"k{n}": "v" for n in range(17)}}, {"tags": {f"k{n}": "v" for n in range(16)}}),
    Case(
        "HPC113",
        "pools[0].tags",
        {"tags": {f"k{n}": "v" for n in range(16)}, "pools[0].tags": {"more": "v"}},
        {"tags": {f"k{n}": "v" for n in range(16)}, "pools[0].tags": {"k1": "other"}},
    ),
    Case(
        "HPC114", "access.ssh_keys[0]", {"access.ssh_keys": ["ssh-ed25519 AAAA"]}, {"access.ssh_keys": [public_key()]}
    ),
    Case(
        "HPC114", "access.ssh_keys[0]", {"access.ssh_keys": ["ssh-ed25519 AAA="]}, {"access.ssh_keys": [public_key()]}
    ),
    Case(
        "HPC114",
        "access.ssh_keys[0]",
        {"access.ssh_keys": [public_key().replace("ssh-ed25519", "ssh-rsa")]},
        {"access.ssh_keys": [_RSA_2048]},
    ),
    Case("HPC114", "access.ssh_keys[0]", {"access.ssh_keys": [_RSA_1024]}, {"access.ssh_keys": [_RSA_2048]}),
    Case(
        "HPC114",
        "access.ssh_keys[0]",
        {"access.ssh_keys": [public_key("ssh-dss")]},
        {"access.ssh_keys": [public_key()]},
    ),
    Case(
        "HPC114",
        "access.ssh_keys[0]",
        {"access.ssh_keys": [public_key("ssh-ed25519", b"short")]},
        {"access.ssh_keys": [public_key()]},
    ),
    Case("HPC105", "access.users[1]", {"access.users": ["ann", "ann"]}, {"access.users": ["ann", "bob"]}),
    Case("HPC116", "access.users[0]", {"access.users": ["slurm"]}, {"access.users": ["slurmy"]}),
    Case(
        "HPC121",
        "slurm.parameters.SuspendTime",
        {"slurm.parameters": {"SuspendTime": "5"}},
        {"slurm.parameters": {"PriorityType": "priority/multifactor"}},
    ),
    Case(
        "HPC125",
        "slurm.parameters.prioritytype",
        {"slurm.parameters": {"PriorityType": "a", "prioritytype": "b"}},
        {"slurm.parameters": {"PriorityType": "a"}},
    ),
    Case("HPC122", "slurm.default_partition", {"slurm.default_partition": "x"}, {"slurm.default_partition": "mpi"}),
    Case("HPC105", "mpi.stacks[1]", {"mpi.stacks": ["openmpi"] * 2}, {"mpi.stacks": ["openmpi"]}),
    Case("HPC123", "mpi.default", {"mpi.stacks": ["mpich"]}, {"mpi": {"stacks": ["mpich"], "default": "mpich"}}),
    # address ranges
    Case("HPC201", "network.cidr", {"network.cidr": "11.0.0.0/16"}, {"network.cidr": "10.0.0.0/16"}),
    Case("HPC201", "network.cidr", {"network.cidr": "172.32.0.0/16"}, {"network.cidr": "172.31.0.0/16"}),
    Case("HPC201", "network.cidr", {"network.cidr": "100.64.0.0/16"}, {"network.cidr": "192.168.0.0/16"}),
    Case(
        "HPC201",
        "network.cidr",
        {**ADOPTED, "network.cidr": "100.100.0.0/16"},
        {**ADOPTED, "network.cidr": "10.0.0.0/12"},
    ),
    Case("HPC201", "network.cidr", {"network.cidr": "127.0.0.0/16"}, {}),
    Case("HPC201", "network.cidr", {"network.cidr": "224.0.0.0/16"}, {}),
    Case("HPC201", "network.cidr", {"network.cidr": "169.254.0.0/16"}, {}),
    Case("HPC202", "network.cidr", {"network.cidr": "10.0.0.0/29"}, {"network.cidr": "10.0.0.0/8"}),
    Case("HPC202", "network.cidr", {"network.cidr": "0.0.0.0/0"}, {}),
    Case(
        "HPC203",
        "network.vswitches.cn-hangzhou-j",
        {"network.vswitches": {"cn-hangzhou-j": "10.17.0.0/20"}},
        {"network.vswitches": {"cn-hangzhou-j": "10.16.16.0/20"}},
    ),
    Case(
        "HPC204",
        "network.vswitches.cn-hangzhou-k",
        {**TWO_ZONES, "network.vswitches": {"cn-hangzhou-j": "10.16.0.0/20", "cn-hangzhou-k": "10.16.8.0/21"}},
        {**TWO_ZONES, "network.vswitches": {"cn-hangzhou-j": "10.16.0.0/20", "cn-hangzhou-k": "10.16.16.0/21"}},
    ),
    Case(
        "HPC205",
        "network.vswitches.cn-hangzhou-j",
        {"network.cidr": "10.0.0.0/8", "network.vswitches": {"cn-hangzhou-j": "10.0.0.0/15"}},
        {"network.cidr": "10.0.0.0/8", "network.vswitches": {"cn-hangzhou-j": "10.0.0.0/16"}},
    ),
    Case("HPC205", "network.vswitches.cn-hangzhou-j", {"network.vswitches": {"cn-hangzhou-j": "10.16.0.0/30"}}, {}),
    Case("HPC206", "network.vswitches.cn-hangzhou-k", {"network.vswitches": {"cn-hangzhou-k": "10.16.0.0/20"}}, {}),
    Case(
        "HPC206",
        "network.vswitch_ids.cn-hangzhou-k",
        {**ADOPTED, "network.vswitch_ids": {"cn-hangzhou-k": "vsw-a"}},
        ADOPTED,
    ),
    # A VPC's first zone has half of it: 252 usable of a /24 minus the reserve of 32 leave 220 nodes.
    Case(
        "HPC207",
        "network.cidr",
        {"network.cidr": "10.0.0.0/23", "pools[0].max": 221},
        {"network.cidr": "10.0.0.0/23", "pools[0].max": 220},
    ),
    Case(
        "HPC207",
        "network.vswitches.cn-hangzhou-j",
        {"network.vswitches": {"cn-hangzhou-j": "10.16.0.0/24"}, "pools[0].max": 120, **_pool(1, max=101)},
        {"network.vswitches": {"cn-hangzhou-j": "10.16.0.0/24"}, "pools[0].max": 120, **_pool(1, max=100)},
    ),
    Case(
        # A zone holds the maxima of the pools that may use it, and of no others.
        "HPC207",
        "network.cidr",
        {**TWO_ZONES, "network.cidr": "10.0.0.0/22", "pools[0].max": 220, **_pool(1, max=220)},
        {
            **TWO_ZONES,
            "network.cidr": "10.0.0.0/22",
            "pools[0].max": 220,
            "pools[0].zones": ["cn-hangzhou-j"],
            **_pool(1, max=220, zones=["cn-hangzhou-k"]),
        },
    ),
    Case(
        "HPC208",
        "zones[1]",
        {**TWO_ZONES, "network.vswitches": {"cn-hangzhou-j": "10.16.0.0/16"}},
        {**TWO_ZONES, "network.vswitches": {"cn-hangzhou-j": "10.16.0.0/17"}},
    ),
    Case(
        "HPC209",
        "network.vswitch_ids.cn-hangzhou-j",
        {"network.vswitch_ids": {"cn-hangzhou-j": "vsw-a"}, "network.vswitches": {"cn-hangzhou-j": "10.16.0.0/20"}},
        {**ADOPTED, "network.vswitch_ids": {"cn-hangzhou-j": "vsw-a"}},
    ),
    Case("HPC211", "network.vpc_id", {**ADOPTED, "network.vswitches": {}}, ADOPTED),
    Case(
        "HPC212",
        "network.vswitch_ids.cn-hangzhou-j",
        {**ADOPTED, "network.vswitches": {}, "network.vswitch_ids": {"cn-hangzhou-j": "vsw-a"}},
        {**ADOPTED, "network.vswitch_ids": {"cn-hangzhou-j": "vsw-a"}},
    ),
    Case(
        "HPC213",
        "network.vpc_id",
        {"network.vpc_id": "vpc-a", "network.vswitches": {"cn-hangzhou-j": "10.16.0.0/20"}},
        ADOPTED,
    ),
    Case("HPC214", "network.ipv6", {"network.ipv6": True}, {"network.ipv6": True, "pools[0].interconnect": "tcp"}),
    # ports
    Case(
        "HPC215",
        "network.mpi_ports",
        {"network.mpi_ports": "30000-31001", "network.srun_ports": "31002-32000"},
        {"network.mpi_ports": "30000-31000"},
    ),
    Case("HPC216", "network.mpi_ports", {"network.mpi_ports": "30000-30006"}, {"network.mpi_ports": "30000-30007"}),
    Case(
        "HPC216",
        "network.mpi_ports",
        {"network.mpi_ports": "30000-30007", "pools[0].hyperthreading": True},
        {"network.mpi_ports": "30000-30015", "pools[0].hyperthreading": True},
    ),
    Case("HPC217", "network.srun_ports", {"network.srun_ports": "31000-31500"}, {"network.srun_ports": "31001-31500"}),
    Case("HPC217", "network.mpi_ports", {"network.mpi_ports": "6810-6817"}, {"network.mpi_ports": "6800-6816"}),
    Case("HPC217", "network.srun_ports", {"network.srun_ports": "2000-2100"}, {"network.srun_ports": "2050-2100"}),
    Case("HPC218", "network.mpi_ports", {"network.mpi_ports": "1023-1100"}, {"network.mpi_ports": "1024-1100"}),
    Case("HPC219", "network.srun_ports", {"network.srun_ports": "32000-32768"}, {"network.srun_ports": "32000-32767"}),
    # SSH
    Case("HPC220", "network.ssh_from", {"network.ssh_from": ["0.0.0.0/0"]}, {}),
    Case(
        "HPC220",
        "network.ssh_from",
        {"network.ssh_from": ["::/0"], "network.ipv6": True, "pools[0].interconnect": "tcp"},
        {},
    ),
    Case(
        "HPC220",
        "network.ssh_from",
        {"network.ssh_from": ["0.0.0.0/1", "128.0.0.0/1"]},
        {"network.ssh_from": ["20.0.0.0/8"]},
    ),
    Case(
        "HPC220",
        "network.ssh_from",
        {"network.ssh_from": ["20.0.0.0/8", "30.0.0.0/24"]},
        {"network.ssh_from": ["20.0.0.0/8", "10.0.0.0/8"]},
    ),
    Case("HPC220", "network.ssh_from", {"network.ssh_from": ["::ffff:0:0/96"]}, {}),
    Case("HPC220", "network.ssh_from", {"network.ssh_from": ["::/1", "8000::/1"]}, {}),
    Case("HPC221", "network.ssh_from", {"network.ssh_from": []}, {"network.ssh_from": [], "login.public_ip": False}),
    Case("HPC222", "network.ssh_from[0]", {"network.ssh_from": ["127.0.0.1/32"]}, {}),
    Case("HPC222", "network.ssh_from[0]", {"network.ssh_from": ["0.1.0.0/16"]}, {}),
    Case("HPC222", "network.ssh_from[0]", {"network.ssh_from": ["fe80::/64"]}, {}),
    Case(
        "HPC223",
        "network.ssh_from[0]",
        {"network.ssh_from": ["2001:db8::/32"]},
        {"network.ssh_from": ["2001:db8::/32"], "network.ipv6": True, "pools[0].interconnect": "tcp"},
    ),
    # instance types
    Case("HPC301", "pools[0].instance_types[0]", {"pools[0].instance_types": ["ecs.c8ae.33xlarge"]}, {}),
    Case("HPC105", "pools[0].instance_types[1]", {"pools[0].instance_types": ["ecs.c8ae.4xlarge"] * 2}, {}),
    Case(
        "HPC302",
        "pools[0].instance_types",
        {"pools[0].instance_types": ["ecs.c8ae.4xlarge", "ecs.c8ae.8xlarge"], "pools[0].memory_margin_percent": 50},
        {"pools[0].instance_types": ["ecs.c8ae.4xlarge", "ecs.c8a.4xlarge"]},
    ),
    Case(
        # 16 vCPUs each, but eight cores against sixteen: alike with hyper-threading only.
        "HPC302",
        "pools[0].instance_types",
        {"pools[0].instance_types": ["ecs.c9i.4xlarge", "ecs.c9ae.4xlarge"]},
        {"pools[0].instance_types": ["ecs.c9i.4xlarge", "ecs.c9ae.4xlarge"], "pools[0].hyperthreading": True},
    ),
    Case(
        "HPC303",
        "pools[0].instance_types",
        {"pools[0].instance_types": ["ecs.c8i.4xlarge", "ecs.g8i.4xlarge"]},
        {"pools[0].instance_types": ["ecs.c8i.4xlarge", "ecs.g8i.4xlarge"], "pools[0].memory_margin_percent": 50},
    ),
    Case("HPC304", "pools[0].instance_types", {"pools[0].instance_types": ["ecs.c8ae.4xlarge", _ARM]}, {}),
    Case(
        "HPC305",
        "pools[0].instance_types[0]",
        {"pools[0].instance_types": ["ecs.c7.4xlarge"]},
        {"pools[0].instance_types": ["ecs.c7.4xlarge"], "pools[0].interconnect": "tcp"},
    ),
    Case(
        "HPC305",
        "pools[0].instance_types[0]",
        {"pools[0].instance_types": ["ecs.hfc7.4xlarge"]},
        {"pools[0].instance_types": ["ecs.c7re.4xlarge"]},
    ),
    Case(
        "HPC305",
        "pools[0].instance_types[0]",
        {"pools[0].instance_types": ["ecs.c9ae.large"]},
        {"pools[0].instance_types": ["ecs.c9ae.xlarge"]},
    ),
    Case(
        "HPC306",
        "pools[0].instance_types[0]",
        {"pools[0].instance_types": ["ecs.g8i.4xlarge"]},
        {"pools[0].instance_types": ["ecs.c8i.4xlarge"]},
    ),
    Case("HPC306", "pools[0].instance_types[0]", {"pools[0].instance_types": ["ecs.hfr8i.4xlarge"]}, {}),
    Case("HPC307", "image.os", {"image.os": "debian-12"}, {"image.os": "ubuntu-24.04"}),
    Case(
        "HPC307",
        "pools[0].image.os",
        {"pools[0].image": {"os": "rocky-9"}},
        {"pools[0].image": {"os": "rocky-9", "image_id": "m-baked", "baked": True}},
    ),
    Case(
        "HPC309",
        "pools[0].instance_types[0]",
        {"pools[0].instance_types": [_HPC], "image.os": "ubuntu-22.04"},
        {"pools[0].instance_types": [_HPC]},
    ),
    Case(
        "HPC309",
        "management.instance_type",
        {"management.instance_type": _HPC, "image.os": "ubuntu-22.04"},
        {"management.instance_type": _HPC},
    ),
    Case("HPC310", "pools[0].instance_types[0]", {"pools[0].instance_types": [_ARM]}, {}, _NoArmImages()),
    Case(
        "HPC311",
        "image.image_id",
        {"image.image_id": "m-x86x86", "pools[0].instance_types": [_ARM]},
        {"image.image_id": "m-x86x86", "pools[0].instance_types": [_ARM], "pools[0].image": {"image_id": "m-armarm"}},
    ),
    Case(
        "HPC312",
        "pools[0].instance_types",
        {"pools[0].instance_types": [_ARM]},
        {"pools[0].instance_types": [_ARM], "login.instance_type": _ARM, "management.instance_type": _ARM},
    ),
    Case(
        "HPC313",
        "pools[0].instance_types[0]",
        {"pools[0].instance_types": ["ecs.hpc9a.32xlarge"], "pools[0].placement": "low-latency"},
        {"pools[0].instance_types": [_HPC], "pools[0].placement": "low-latency"},
    ),
    Case(
        "HPC314",
        "pools[0].instance_types[0]",
        {"pools[0].instance_types": [_ARM], "pools[0].placement": "low-latency"},
        {"pools[0].placement": "low-latency"},
    ),
    Case(
        "HPC315",
        "pools[0].placement",
        {**TWO_ZONES, "pools[0].placement": "low-latency"},
        {**TWO_ZONES, "pools[0].placement": "low-latency", "pools[0].zones": ["cn-hangzhou-k"]},
    ),
    Case(
        "HPC315",
        "pools[0].zones",
        {**TWO_ZONES, "pools[0].placement": "low-latency", "pools[0].zones": TWO_ZONES["zones"]},
        {**TWO_ZONES, "pools[0].zones": TWO_ZONES["zones"]},
    ),
    Case(
        "HPC331",
        "pools[0].instance_types[0]",
        {"pools[0].instance_types": [_HPC], "pools[0].hyperthreading": True},
        {"pools[0].hyperthreading": True},
    ),
    Case(
        "HPC332",
        "pools[0].instance_types[0]",
        {"pools[0].instance_types": ["ecs.hpc8i.32xlarge"]},
        {"pools[0].instance_types": [_HPC]},
    ),
    Case("HPC333", "pools[0].instance_types[0]", {"pools[0].instance_types": ["ecs.c7re.4xlarge"]}, {}),
    Case(
        "HPC334", "pools[0].instance_types[0]", {}, {**TWO_ZONES, "pools[0].zones": ["cn-hangzhou-k"]}, _SoldInOneZone()
    ),
    # charge, sizes and times
    Case("HPC316", "pools[0].charge", {"pools[0].charge": "prepaid"}, {"pools[0].charge": "payg"}),
    Case(
        "HPC346",
        "pools[0].auto_release",
        {"pools[0].charge": "prepaid", "pools[0].auto_release": "2h"},
        {"pools[0].charge": "prepaid"},
    ),
    Case(
        "HPC317",
        "pools[0].spot_price_limit",
        {"pools[0].charge": "payg", "pools[0].spot_price_limit": 1},
        {"pools[0].spot_price_limit": 1},
    ),
    Case(
        "HPC320",
        "pools[0].spot_price_limit",
        {"pools[0].spot_price_limit": "0.1234"},
        {"pools[0].spot_price_limit": "0.1230"},
    ),
    Case("HPC320", "pools[0].spot_price_limit", {"pools[0].spot_price_limit": 0}, {"pools[0].spot_price_limit": 0.001}),
    Case(
        "HPC321",
        "pools[0].spot_duration",
        {"pools[0].charge": "payg", "pools[0].spot_duration": 1},
        {"pools[0].spot_duration": 1},
    ),
    Case(
        "HPC318",
        "pools[0].spot_price_limit",
        {"pools[0].instance_types": ["ecs.c8i.4xlarge"], "pools[0].spot_price_limit": 5.417},
        {"pools[0].instance_types": ["ecs.c8i.4xlarge"], "pools[0].spot_price_limit": 5.416},
    ),
    Case("HPC319", "pools[0].spot_price_limit", {"pools[0].spot_price_limit": 0.001}, {}, _NoPrices()),
    Case("HPC322", "pools[0].min", {"pools[0].min": 9}, {"pools[0].min": 8}),
    Case("HPC324", "pools[0].auto_release", {"pools[0].auto_release": "29m59s"}, {"pools[0].auto_release": "30m"}),
    Case("HPC324", "pools[0].auto_release", {"pools[0].auto_release": "1095d1s"}, {"pools[0].auto_release": "1095d"}),
    Case(
        "HPC325",
        "pools[0].idle",
        {"pools[0].max_lifetime": "2h", "pools[0].idle": "2h"},
        {"pools[0].max_lifetime": "2h", "pools[0].idle": "1h59m"},
    ),
    Case("HPC326", "pools[0].auto_release", {"pools[0].resume_timeout": "1h"}, {"pools[0].resume_timeout": "59m"}),
    Case("HPC328", "pools[0].max_lifetime", {"pools[0].max_lifetime": "10m"}, {"pools[0].max_lifetime": "11m"}),
    Case("HPC329", "pools[0].resume_timeout", {"pools[0].resume_timeout": "29s"}, {"pools[0].resume_timeout": "30s"}),
    Case(
        "HPC330",
        "pools[0].max_time",
        {"pools[0].max_lifetime": "1d", "pools[0].max_time": "25h"},
        {"pools[0].max_lifetime": "1d", "pools[0].max_time": "24h"},
    ),
    Case("HPC342", "image.baked", {"image.baked": True}, {"image": {"baked": True, "image_id": "m-baked"}}),
    Case(
        "HPC342",
        "pools[0].image.baked",
        {"pools[0].image": {"baked": True}},
        {"pools[0].image": {"baked": True, "image_id": "m-baked"}},
    ),
    Case(
        "HPC345",
        "pools[0].system_disk.performance_level",
        {"pools[0].system_disk": {"performance_level": "PL2", "size_gib": 460}},
        {"pools[0].system_disk": {"performance_level": "PL2", "size_gib": 461}},
    ),
    Case(
        "HPC345",
        "login.system_disk.performance_level",
        {"login.system_disk": {"performance_level": "PL3", "size_gib": 1260}},
        {"login.system_disk": {"performance_level": "PL3", "size_gib": 1261}},
    ),
    # storage
    Case("HPC401", "storage", {"storage": []}, {}),
    Case("HPC402", "storage", {"storage": [_EXTREME]}, {"storage": [{"mount": "/home"}, _EXTREME]}),
    Case(
        "HPC501",
        "management.backup",
        {**TWO_ZONES, "storage": [_EXTREME], "management.backup": True},
        {**TWO_ZONES, "management.backup": True},
    ),
    Case(
        "HPC403",
        "storage[1].mount",
        {"storage": [{"mount": "/a"}, {"mount": "/a"}]},
        {"storage": [{"mount": "/a"}, {"mount": "/ab"}]},
    ),
    Case(
        "HPC403",
        "storage[1].mount",
        {"storage": [{"mount": "/a"}, {"mount": "/b/../a/"}]},
        {"storage": [{"mount": "/a"}]},
    ),
    Case(
        "HPC404",
        "storage[1].mount",
        {"storage": [{"mount": "/a"}, {"mount": "/a/b"}]},
        {"storage": [{"mount": "/a"}, {"mount": "/a-b"}]},
    ),
    Case(
        "HPC404",
        "storage[1].mount",
        {"storage": [{"mount": "/a/b/c"}, {"mount": "/a"}]},
        {"storage": [{"mount": "/a/b/c"}, {"mount": "/b"}]},
    ),
    *(
        Case("HPC405", "storage[0].mount", {"storage": [{"mount": mount}]}, {"storage": [{"mount": "/data"}]})
        for mount in (
            "/",
            "/usr",
            "/usr/local",
            "/etc/x",
            "/var/lib",
            "/opt",
            "/opt/hpc",
            "/opt/hpc/mpi",
            "/proc",
            "/root",
            "/data/../etc",
        )
    ),
    Case("HPC405", "storage[0].mount", {"storage": [{"mount": "/tmp"}]}, {"storage": [{"mount": "/opt/apps"}]}),
    *(
        Case("HPC406", "storage[0].mount", {"storage": [{"mount": mount}]}, {"storage": [{"mount": "/data"}]})
        for mount in ("/data/", "//data", "/x/../data", "/data/.", "/./data", "/da//ta")
    ),
    Case(
        "HPC407",
        "storage[0].storage_type",
        {"storage": [{"mount": "/home", "storage_type": "advance"}]},
        {"storage": [{"mount": "/home", "storage_type": "premium"}]},
    ),
    Case(
        "HPC407",
        "storage[1].storage_type",
        {"storage": [{"mount": "/home"}, {**_EXTREME, "storage_type": "capacity"}]},
        {"storage": [{"mount": "/home"}, {**_EXTREME, "storage_type": "advance"}]},
    ),
    Case(
        "HPC408",
        "storage[1].capacity_gib",
        {"storage": [{"mount": "/home"}, {"mount": "/s", "kind": "extreme"}]},
        {"storage": [{"mount": "/home"}, _EXTREME]},
    ),
    Case(
        "HPC409",
        "storage[1].capacity_gib",
        {"storage": [{"mount": "/home"}, {**_EXTREME, "capacity_gib": 99}]},
        {"storage": [{"mount": "/home"}, {**_EXTREME, "capacity_gib": 100}]},
    ),
    Case(
        "HPC409",
        "storage[1].capacity_gib",
        {"storage": [{"mount": "/home"}, {**_EXTREME, "capacity_gib": 262145}]},
        {"storage": [{"mount": "/home"}, {**_EXTREME, "capacity_gib": 262144}]},
    ),
    Case(
        "HPC410",
        "storage[0].capacity_gib",
        {"storage": [{"mount": "/home", "capacity_gib": 100}]},
        {"storage": [{"mount": "/home", "expected_gib": 100}]},
    ),
    Case(
        "HPC411",
        "storage[0].zone",
        {"storage": [{"mount": "/home", "zone": "cn-hangzhou-k"}]},
        {"storage": [{"mount": "/home", "zone": "cn-hangzhou-j"}]},
    ),
    Case(
        "HPC413",
        "storage[1].file_system_id",
        {"storage": [{"mount": "/a", "file_system_id": "31a8e4"}, {"mount": "/b", "file_system_id": "31a8e4"}]},
        {"storage": [{"mount": "/a", "file_system_id": "31a8e4"}, {"mount": "/b", "file_system_id": "31a8e5"}]},
    ),
    # 1,000 clients: one management and one login node leave 998.
    Case("HPC414", "storage", {"pools[0].max": 999}, {"pools[0].max": 998}),
    Case(
        "HPC414",
        "storage",
        {"pools[0].max": 500, **_pool(1, max=498), "management.backup": True, **TWO_ZONES},
        {"pools[0].max": 500, **_pool(1, max=497), "management.backup": True, **TWO_ZONES},
    ),
    Case(
        "HPC415",
        "storage[0].file_system_id",
        {"storage": [{"mount": "/a", "file_system_id": "extreme-0a1b2c"}]},
        {"storage": [{"mount": "/a", "file_system_id": "0a1b2c"}]},
    ),
    Case(
        "HPC415",
        "storage[1].file_system_id",
        {
            "storage": [
                {"mount": "/a"},
                {"mount": "/b", "kind": "extreme", "zone": "cn-hangzhou-j", "file_system_id": "0a1b2c"},
            ]
        },
        {
            "storage": [
                {"mount": "/a"},
                {"mount": "/b", "kind": "extreme", "zone": "cn-hangzhou-j", "file_system_id": "extreme-0a1b2c"},
            ]
        },
    ),
    Case(
        "HPC416",
        "storage[1].file_system_id",
        {"storage": [{"mount": "/a"}, {"mount": "/b", "kind": "extreme", "file_system_id": "extreme-0a1b2c"}]},
        {
            "storage": [
                {"mount": "/a"},
                {"mount": "/b", "kind": "extreme", "zone": "cn-hangzhou-j", "file_system_id": "extreme-0a1b2c"},
            ]
        },
    ),
    Case(
        "HPC418",
        "storage[1].expected_gib",
        {"storage": [{"mount": "/home"}, {**_EXTREME, "expected_gib": 1}]},
        {"storage": [{"mount": "/home", "expected_gib": 1}, _EXTREME]},
    ),
    # long-lived nodes
    Case("HPC502", "management.backup", {"management.backup": True}, {**TWO_ZONES, "management.backup": True}),
    Case("HPC503", "login.count", {"login.count": 0}, {"login.count": 1}),
    *(
        Case(
            "HPC504",
            "login.period_months",
            {"login": {"charge": "prepaid", "period_months": bad}},
            {"login": {"charge": "prepaid", "period_months": good}},
        )
        for bad, good in ((10, 9), (11, 12), (13, 24), (59, 60))
    ),
    Case(
        "HPC505",
        "management.period_months",
        {"management.period_months": 12},
        {"management": {"charge": "prepaid", "period_months": 12}},
    ),
    Case(
        "HPC505", "login.auto_renew", {"login.auto_renew": True}, {"login": {"charge": "prepaid", "auto_renew": True}}
    ),
    Case("HPC507", "management.zone", {"management.zone": "cn-hangzhou-k"}, {"management.zone": "cn-hangzhou-j"}),
    Case(
        "HPC508",
        "login.instance_type",
        {"login.instance_type": "ecs.c7.33xlarge"},
        {"login.instance_type": "ecs.c7.xlarge"},
    ),
    # caps, quota, usage; ecs.c8ae.4xlarge has 16 vCPUs, management and login 8 + 4
    Case("HPC604", "budget.max_nodes", {"budget.max_nodes": 7}, {"budget.max_nodes": 8}),
    Case("HPC605", "budget.max_vcpus", {"budget.max_vcpus": 127}, {"budget.max_vcpus": 128}),
    Case(
        "HPC606",
        "quota.payg_vcpus",
        {"quota.payg_vcpus": 139, "pools[0].charge": "payg"},
        {"quota.payg_vcpus": 140, "pools[0].charge": "payg"},
    ),
    Case(
        "HPC606",
        "quota.payg_vcpus",
        {"quota.payg_vcpus": 139, "pools[0].charge": "spot-then-payg"},
        {"quota.payg_vcpus": 12},
    ),
    Case(
        "HPC606", "quota.payg_vcpus", {"quota.payg_vcpus": 11}, {"quota.payg_vcpus": 4, "management.charge": "prepaid"}
    ),
    Case("HPC607", "quota.spot_vcpus", {"quota.spot_vcpus": 127}, {"quota.spot_vcpus": 128}),
    Case(
        "HPC607",
        "quota.spot_vcpus",
        {"quota.spot_vcpus": 127, "pools[0].charge": "spot-then-payg"},
        {"quota.spot_vcpus": 0, "pools[0].charge": "payg"},
    ),
    Case("HPC608", "usage.mpj", {"usage": {"mpj": {}}}, {"usage": {"mpi": {}}}),
    Case(
        "HPC609",
        "usage.mpi.node_hours_per_month",
        {"usage.mpi.node_hours_per_month": 5953},
        {"usage.mpi.node_hours_per_month": 5952},
    ),
    Case(
        "HPC610",
        "usage.mpi.spot_share",
        {"usage.mpi.spot_share": 0.5},
        {"usage.mpi.spot_share": 0.5, "pools[0].charge": "spot-then-payg"},
    ),
    Case(
        "HPC610",
        "usage.mpi.spot_share",
        {"usage.mpi.spot_share": 0.1, "pools[0].charge": "payg"},
        {"usage.mpi.spot_share": 0, "pools[0].charge": "payg"},
    ),
    Case(
        "HPC611",
        "budget.max_vcpus",
        {"budget.max_vcpus": 999, "pools[0].instance_types": ["ecs.zz.large"]},
        {"budget.max_vcpus": 999},
    ),
    Case(
        "HPC611",
        "quota.payg_vcpus",
        {"quota.payg_vcpus": 999, "login.instance_type": "ecs.zz.large"},
        {"quota.payg_vcpus": 999},
    ),
)
