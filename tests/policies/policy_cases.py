"""Resources that rules refuse, and the same resources as they should be: one list for all tests of the pack."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from policies import kinds
from policies.model import Resource, Stack
from policies.props import UNKNOWN, Props

CLUSTER_TAGS = {"hpc:cluster": "c", "hpc:role": "login"}
COMPUTE_TAGS = {"hpc:cluster": "c", "hpc:role": "compute", "hpc:pool": "mpi"}

#: A resource of each type that no rule has anything against.
GOOD: dict[str, dict[str, Any]] = {
    kinds.CLUSTER: {
        "cluster": "c",
        "region": "cn-hangzhou",
        "zones": ["cn-hangzhou-j"],
        "sshFrom": ["203.0.113.0/24"],
        "worstHourly": 100.0,
        "expectedMonthly": 5000.0,
        "priceKnown": True,
        "currency": "CNY",
    },
    kinds.POOL: {
        "cluster": "c",
        "pool": "mpi",
        "region": "cn-hangzhou",
        "instanceTypes": ["ecs.c8ae.4xlarge"],
        "charge": "spot",
        "min": 0,
        "max": 8,
        "vcpusPerNode": 16,
        "idleSeconds": 600,
        "autoReleaseSeconds": 3600,
        "interconnect": "erdma",
        "trafficMode": "HighPerformance",
        "publicIp": False,
        "encrypted": True,
        "worstHourly": 40.0,
        "expectedMonthly": 1000.0,
    },
    kinds.INSTANCE: {
        "instanceType": "ecs.c7.large",
        "keyName": "hpc-c",
        "httpTokens": "required",
        "internetMaxBandwidthOut": 0,
        "systemDiskEncrypted": True,
        "tags": CLUSTER_TAGS,
        "volumeTags": CLUSTER_TAGS,
    },
    kinds.TEMPLATE: {
        "instanceType": "ecs.c8ae.4xlarge",
        "instanceChargeType": "PostPaid",
        "keyPairName": "hpc-c",
        "httpTokens": "required",
        "internetMaxBandwidthOut": 0,
        "systemDisk": {"encrypted": True},
        "tags": COMPUTE_TAGS,
        "templateTags": COMPUTE_TAGS,
    },
    kinds.SCALING: {
        "instanceTypes": ["ecs.c8ae.4xlarge"],
        "keyName": "hpc-c",
        "systemDiskEncrypted": True,
        "networkInterfaces": [{"instanceType": "Primary", "networkInterfaceTrafficMode": "HighPerformance"}],
        "tags": COMPUTE_TAGS,
    },
    kinds.SCALING_GROUP: {"minSize": 0, "maxSize": 4, "tags": COMPUTE_TAGS},
    kinds.PROVISIONING: {
        "totalTargetCapacity": "4",
        "launchTemplateConfigs": [{"instanceType": "ecs.c8ae.4xlarge", "weightedCapacity": "1"}],
    },
    kinds.QUEUE: {
        "interConnect": "eRDMA",
        "enableScaleIn": True,
        "computeNodes": [{"instanceType": "ecs.c8ae.4xlarge", "instanceChargeType": "PostPaid"}],
    },
    kinds.INTERFACE: {"networkInterfaceTrafficMode": "HighPerformance", "tags": COMPUTE_TAGS},
    kinds.DISK: {"encrypted": True, "tags": CLUSTER_TAGS},
    kinds.GROUP: {"innerAccessPolicy": "Drop", "tags": CLUSTER_TAGS},
    kinds.GROUP_RULE: {
        "type": "ingress",
        "policy": "accept",
        "ipProtocol": "tcp",
        "portRange": "30000/31000",
        "sourceSecurityGroupId": UNKNOWN,
    },
    kinds.ADDRESS_BINDING: {"instanceId": UNKNOWN, "instanceType": "EcsInstance"},
    kinds.FILE_SYSTEM: {"fileSystemType": "standard", "encryptType": 1, "tags": CLUSTER_TAGS},
    kinds.NAS_RULE: {"sourceCidrIp": "10.16.0.0/20", "userAccessType": "no_squash"},
    kinds.VPC: {"cidrBlock": "10.16.0.0/16", "tags": CLUSTER_TAGS},
    kinds.VSWITCH: {"cidrBlock": "10.16.0.0/20", "zoneId": "cn-hangzhou-j", "tags": CLUSTER_TAGS},
    kinds.RAM_POLICY: {
        "policyDocument": json.dumps(
            {"Version": "1", "Statement": [{"Effect": "Allow", "Action": ["ecs:RunInstances"], "Resource": "*"}]}
        ),
        "tags": CLUSTER_TAGS,
    },
    kinds.RAM_ATTACHMENTS[0]: {"policyName": "hpc-c", "policyType": "Custom", "roleName": "r"},
    kinds.ADDRESS: {"bandwidth": "20", "tags": CLUSTER_TAGS},
}


#: Resources that are refused whatever their inputs are.
NEVER: dict[str, dict[str, Any]] = {
    kinds.INSTANCE_SET: {"instanceType": "ecs.c7.large", "amount": 100, "tags": CLUSTER_TAGS},
    "alicloud:ecs/disk:Disk": {"encrypted": True, "size": 40, "zoneId": "cn-hangzhou-j", "tags": CLUSTER_TAGS},
}


def urn(kind: str, name: str, above: str = "") -> str:
    return f"urn:pulumi:dev::hpc::{above + '$' if above else ''}{kind}::{name}"


def resource(kind: str, name: str = "", **changes: Any) -> Resource:
    """A good resource with some inputs changed; `_protect`, `_parent`, `_sources`, `_region` are no inputs."""
    name = name or kind.rpartition(":")[2].lower()
    usual = NEVER[kind] if kind in NEVER else GOOD[kind]
    values = copy.deepcopy({key: value for key, value in usual.items() if value is not UNKNOWN})
    values.update({key: UNKNOWN for key, value in usual.items() if value is UNKNOWN})
    options = {key: changes.pop(key) for key in list(changes) if key.startswith("_")}
    for key, value in changes.items():
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return Resource(
        kind,
        name,
        Props(values),
        urn(kind, name),
        protect=options.get("_protect", kind == kinds.FILE_SYSTEM),
        parent=options.get("_parent", ""),
        region=options.get("_region", ""),
        sources=options.get("_sources", {}),
    )


def around() -> tuple[Resource, ...]:
    """What a stack has beside the resource that is looked at."""
    cluster = resource(kinds.CLUSTER, "c")
    return (
        cluster,
        resource(kinds.POOL, "c-pool-mpi", _parent=cluster.urn),
        resource(kinds.VPC, "c-vpc"),
        resource(kinds.VSWITCH, "c-vswitch"),
        resource(kinds.GROUP, "c-members"),
        resource(kinds.INSTANCE, "c-login", _parent=cluster.urn),
    )


#: Where inputs that are outputs of others come from.
SOURCES: dict[str, Mapping[str, tuple[str, ...]]] = {
    kinds.GROUP_RULE: {"sourceSecurityGroupId": (urn(kinds.GROUP, "c-members"),)},
    kinds.ADDRESS_BINDING: {"instanceId": (urn(kinds.INSTANCE, "c-login"),)},
}


@dataclass(frozen=True)
class Case:
    """What a rule must refuse.

    Attributes:
        rule: name of the rule.
        kind: type of the resource.
        changes: inputs that differ from the good one; None takes an input away.
        says: part of the message.
        config: settings of the rule.
        others: further resources of the stack.
    """

    rule: str
    kind: str
    changes: dict[str, Any]
    says: str
    config: dict[str, Any] = field(default_factory=dict)
    others: tuple[Resource, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}-{self.kind.rpartition(':')[2]}-{','.join(self.changes)}"

    def subject(self, name: str = "subject") -> Resource:
        changes = dict(self.changes)
        changes.setdefault("_sources", SOURCES.get(self.kind, {}))
        if self.kind in (kinds.INSTANCE, kinds.POOL):
            changes.setdefault("_parent", urn(kinds.CLUSTER, "c"))
        return resource(self.kind, name, **changes)

    def stack(self) -> Stack:
        return Stack((*around(), *self.others, self.subject()))


def _cases(rule: str, kind: str, *entries: tuple[dict[str, Any], str]) -> Iterable[Case]:
    return [Case(rule, kind, changes, says) for changes, says in entries]


def _document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "1", "Statement": list(statements)})


NO_ERDMA = "ecs.c7.2xlarge"
LAUNCHED = {
    "instanceType": NO_ERDMA,
    "maxPrice": "1",
    "priority": "1",
    "vswitchId": "vsw-1",
    "weightedCapacity": "1",
}
GROUP_SOURCE = {"sourceSecurityGroupId": None}
OWN_SOURCE: dict[str, Any] = {**GROUP_SOURCE, "cidrIp": "10.16.0.0/16"}
SSH: dict[str, Any] = {**GROUP_SOURCE, "portRange": "22/22"}

#: What is refused.
BAD: list[Case] = [
    *_cases(
        "hpc-erdma-capable-types",
        kinds.POOL,
        ({"instanceTypes": ["ecs.c8ae.4xlarge", NO_ERDMA]}, "ecs.c7.2xlarge has no elastic RDMA interface"),
        ({"instanceTypes": ["ecs.nosuch.large"]}, "could not be verified: the catalog does not know"),
        ({"instanceTypes": [NO_ERDMA], "interconnect": None}, "the nearest type with eRDMA is"),
    ),
    *_cases(
        "hpc-erdma-capable-types",
        kinds.INSTANCE,
        ({"networkInterfaceTrafficMode": "HighPerformance"}, "ecs.c7.large"),
        ({"networkInterfaces": {"networkInterfaceTrafficMode": "HighPerformance"}}, "ecs.c7.large"),
        ({"tags": {**CLUSTER_TAGS, "hpc:interconnect": "erdma"}}, "ecs.c7.large"),
    ),
    *_cases(
        "hpc-erdma-capable-types",
        kinds.TEMPLATE,
        ({"instanceType": NO_ERDMA, "tags": {**COMPUTE_TAGS, "hpc:interconnect": "erdma"}}, NO_ERDMA),
    ),
    *_cases(
        "hpc-erdma-capable-types",
        kinds.SCALING,
        ({"instanceTypes": ["ecs.c8ae.4xlarge", NO_ERDMA]}, NO_ERDMA),
        ({"instanceTypes": None, "instanceType": NO_ERDMA}, NO_ERDMA),
        ({"instanceTypes": None, "instanceTypeOverrides": [{"instanceType": NO_ERDMA}]}, NO_ERDMA),
    ),
    *_cases("hpc-erdma-capable-types", kinds.QUEUE, ({"computeNodes": [{"instanceType": NO_ERDMA}]}, NO_ERDMA)),
    *_cases(
        "hpc-erdma-capable-members",
        kinds.TEMPLATE,
        ({"instanceType": NO_ERDMA}, "belongs to pool mpi, which says erdma"),
        ({"instanceType": NO_ERDMA, "tags": CLUSTER_TAGS, "_parent": urn(kinds.POOL, "c-pool-mpi")}, NO_ERDMA),
    ),
    *_cases(
        "hpc-erdma-capable-members",
        kinds.PROVISIONING,
        (
            {"launchTemplateConfigs": [LAUNCHED], "_parent": urn(kinds.POOL, "c-pool-mpi")},
            NO_ERDMA,
        ),
    ),
    *_cases(
        "hpc-erdma-traffic-mode",
        kinds.POOL,
        ({"trafficMode": "Standard"}, "its traffic mode is Standard"),
        ({"trafficMode": None}, "its traffic mode is Standard"),
    ),
    *_cases("hpc-erdma-traffic-mode", kinds.INTERFACE, ({"networkInterfaceTrafficMode": None}, "HighPerformance")),
    *_cases(
        "hpc-erdma-traffic-mode",
        kinds.SCALING,
        ({"networkInterfaces": None}, "a running node cannot be switched"),
        ({"networkInterfaces": [{"networkInterfaceTrafficMode": "Standard"}]}, "HighPerformance"),
    ),
    *_cases(
        "hpc-erdma-traffic-mode",
        kinds.INSTANCE,
        (
            {"instanceType": "ecs.c8ae.4xlarge", "tags": COMPUTE_TAGS, "autoReleaseTime": "2026-12-01T00:00:00Z"},
            "networkInterfaces[].networkInterfaceTrafficMode is not HighPerformance",
        ),
    ),
    *_cases(
        "hpc-port-range-width",
        kinds.GROUP_RULE,
        ({"portRange": "1/65535"}, "portRange 1/65535 opens 65,535 ports, more than 1,001"),
        ({"portRange": "-1/-1"}, "65,535 ports"),
        ({"portRange": None}, "portRange -1/-1"),
        ({"portRange": "30000/31001"}, "1,002 ports"),
        ({"ipProtocol": "udp", "portRange": "30000/40000"}, "10,001 ports"),
        ({"type": None, "policy": None, "portRange": "1/2000"}, "2,000 ports"),
        ({"portRange": "many"}, "could not be verified: `portRange` is no range of ports"),
    ),
    *_cases(
        "hpc-protocol-all",
        kinds.GROUP_RULE,
        ({"ipProtocol": "all"}, "ipProtocol all lets in everything"),
        ({"ipProtocol": None}, "ipProtocol all"),
    ),
    *_cases(
        "hpc-open-to-world",
        kinds.GROUP_RULE,
        ({**GROUP_SOURCE, "cidrIp": "0.0.0.0/0"}, "everybody on the Internet (0.0.0.0/0)"),
        ({**GROUP_SOURCE, "ipv6CidrIp": "::/0", "portRange": "22/22"}, "everybody on the Internet (::/0)"),
        ({**GROUP_SOURCE, "cidrIp": "0.0.0.0/0", "ipProtocol": "icmp", "portRange": "-1/-1"}, "icmp"),
    ),
    *_cases(
        "hpc-ssh-sources",
        kinds.GROUP_RULE,
        ({**SSH, "cidrIp": "0.0.0.0/0"}, "SSH is open to 0.0.0.0/0"),
        ({**SSH, "cidrIp": "203.0.0.0/8"}, "the widest network that may log in is a /16"),
        ({**SSH, "ipv6CidrIp": "::/0"}, "a /48"),
        ({**GROUP_SOURCE, "cidrIp": "0.0.0.0/0", "portRange": "1/1000"}, "SSH is open"),
    ),
    *_cases(
        "hpc-sources-inside-cluster",
        kinds.GROUP_RULE,
        ({**GROUP_SOURCE, "cidrIp": "10.0.0.0/8"}, "10.0.0.0/8 is wider than the cluster or outside of it"),
        ({**GROUP_SOURCE, "cidrIp": "198.51.100.0/24"}, "outside of it"),
        ({**SSH, "cidrIp": "198.51.100.0/24"}, "none of the networks that may log in"),
        ({**GROUP_SOURCE, "ipv6CidrIp": "2001:db8::/32"}, "2001:db8::/32"),
        ({**GROUP_SOURCE, "prefixListId": "pl-1"}, "could not be verified: its source is a prefix list"),
        ({**GROUP_SOURCE, "cidrIp": "everybody"}, "could not be verified: `cidrIp` is no address range"),
    ),
    *_cases(
        "hpc-source-groups",
        kinds.GROUP_RULE,
        (GROUP_SOURCE, "the rule has no source"),
        ({"sourceSecurityGroupId": "sg-else", "_sources": {}}, "sg-else, which is not one of this stack"),
    ),
    *_cases(
        "hpc-inner-access",
        kinds.GROUP,
        ({"innerAccessPolicy": "Accept"}, "innerAccessPolicy is Accept"),
        ({"innerAccessPolicy": None}, "not given"),
        ({"innerAccessPolicy": None, "innerAccess": True}, "Accept"),
    ),
    *_cases(
        "hpc-keys-not-passwords",
        kinds.INSTANCE,
        ({"password": "geheim"}, "password is set"),
        ({"kmsEncryptedPassword": UNKNOWN}, "kmsEncryptedPassword is set"),
        ({"passwordInherit": True}, "passwordInherit"),
        ({"keyName": None}, "keyName is not given"),
    ),
    *_cases("hpc-keys-not-passwords", kinds.TEMPLATE, ({"keyPairName": None}, "keyPairName is not given")),
    *_cases("hpc-keys-not-passwords", kinds.SCALING, ({"password": "geheim"}, "password is set")),
    *_cases(
        "hpc-metadata-tokens",
        kinds.INSTANCE,
        ({"httpTokens": "optional"}, "httpTokens is not `required`"),
        ({"httpTokens": None}, "httpTokens is not `required`"),
    ),
    *_cases("hpc-metadata-tokens", kinds.TEMPLATE, ({"httpTokens": None}, "httpTokens is not `required`")),
    *_cases("hpc-no-public-address", kinds.POOL, ({"publicIp": True}, "public addresses")),
    *_cases("hpc-no-public-address", kinds.TEMPLATE, ({"internetMaxBandwidthOut": 5}, "only login may have one")),
    *_cases("hpc-no-public-address", kinds.SCALING, ({"internetMaxBandwidthOut": 5}, "only login may have one")),
    *_cases(
        "hpc-no-public-address",
        kinds.INSTANCE,
        (
            {"tags": {"hpc:cluster": "c", "hpc:role": "monitoring"}, "internetMaxBandwidthOut": 1},
            "gives it a public address",
        ),
        ({"tags": {"hpc:cluster": "c", "hpc:role": "monitoring"}, "allocatePublicIp": True}, "allocatePublicIp"),
    ),
    Case(
        "hpc-no-elastic-address",
        kinds.ADDRESS_BINDING,
        {"_sources": {"instanceId": (urn(kinds.INSTANCE, "node"),)}},
        "node has the role compute",
        others=(
            resource(
                kinds.INSTANCE,
                "node",
                tags=COMPUTE_TAGS,
                autoReleaseTime="2026-12-01T00:00:00Z",
                _parent=urn(kinds.CLUSTER, "c"),
            ),
        ),
    ),
    *_cases(
        "hpc-no-elastic-address",
        kinds.ADDRESS_BINDING,
        ({"instanceId": "i-else", "_sources": {}}, "could not be verified: the instance that gets the address"),
    ),
    *_cases(
        "hpc-ram-actions",
        kinds.RAM_POLICY,
        ({"policyDocument": _document({"Effect": "Allow", "Action": "*", "Resource": "*"})}, "allows `*`"),
        ({"policyDocument": _document({"Action": ["ecs:*"]})}, "allows `ecs:*`"),
        ({"policyDocument": _document({"Effect": "Allow", "NotAction": "ram:*"})}, "all but some".replace("all", "*")),
        ({"policyDocument": None, "document": _document({"Action": "ram:*"})}, "allows `ram:*`"),
        (
            {"policyDocument": None, "statements": [{"effect": "Allow", "actions": ["ecs:*"], "resources": ["*"]}]},
            "allows `ecs:*`",
        ),
        ({"policyDocument": "{"}, "could not be verified: `policyDocument` is no policy document"),
    ),
    *_cases(
        "hpc-ram-system-policies",
        kinds.RAM_ATTACHMENTS[0],
        ({"policyType": "System", "policyName": "AdministratorAccess"}, "AdministratorAccess allows everything"),
        ({"policyType": "System", "policyName": "AliyunECSFullAccess"}, "AliyunECSFullAccess"),
    ),
    *_cases("hpc-disks-encrypted", kinds.POOL, ({"encrypted": False}, "system disks are not encrypted")),
    *_cases("hpc-disks-encrypted", kinds.DISK, ({"encrypted": None}, "encrypted is not true")),
    *_cases("hpc-disks-encrypted", kinds.TEMPLATE, ({"systemDisk": {"size": 40}}, "systemDisk.encrypted")),
    *_cases("hpc-disks-encrypted", kinds.SCALING, ({"systemDiskEncrypted": None}, "systemDiskEncrypted")),
    *_cases(
        "hpc-disks-encrypted",
        kinds.INSTANCE,
        ({"systemDiskEncrypted": False}, "systemDiskEncrypted"),
        ({"dataDisks": [{"size": 20, "encrypted": True}, {"size": 20}]}, "dataDisks[1].encrypted is not true"),
    ),
    *_cases(
        "hpc-nas-encrypted", kinds.FILE_SYSTEM, ({"encryptType": 0}, "encryptType"), ({"encryptType": None}, "key of")
    ),
    *_cases(
        "hpc-nas-sources",
        kinds.NAS_RULE,
        ({"sourceCidrIp": "0.0.0.0/0"}, "everybody (0.0.0.0/0) may mount, and root there is root here"),
        ({"sourceCidrIp": "10.0.0.0/8", "userAccessType": "all_squash"}, "10.0.0.0/8 is wider than the cluster"),
        ({"sourceCidrIp": "192.0.2.0/24", "userAccessType": None}, "(no_squash)"),
        ({"sourceCidrIp": None, "ipv6SourceCidrIp": "::/0"}, "everybody (::/0)"),
    ),
    *_cases(
        "hpc-nas-without-network",
        kinds.FILE_SYSTEM,
        ({"vpcId": "vpc-1"}, "vpcId is set"),
        ({"vswitchId": UNKNOWN, "fileSystemType": "extreme"}, "vswitchId is set"),
    ),
    *_cases("hpc-keep-data", kinds.FILE_SYSTEM, ({"_protect": False}, "the file system is not protected")),
    *_cases(
        "hpc-keep-data",
        kinds.INSTANCE,
        ({"tags": {"hpc:cluster": "c", "hpc:role": "management"}}, "the management node is not protected"),
    ),
    *_cases(
        "hpc-tags",
        kinds.INSTANCE,
        ({"tags": None}, "tags lacks hpc:cluster, hpc:role"),
        ({"volumeTags": {"hpc:cluster": "c"}}, "volumeTags lacks hpc:role"),
    ),
    *_cases("hpc-tags", kinds.TEMPLATE, ({"templateTags": None}, "templateTags lacks hpc:cluster")),
    *_cases("hpc-tags", kinds.DISK, ({"tags": {"hpc:cluster": "", "hpc:role": "x"}}, "tags lacks hpc:cluster")),
    *_cases("hpc-compute-not-prepaid", kinds.POOL, ({"charge": "prepaid"}, "subscription")),
    *_cases("hpc-compute-not-prepaid", kinds.TEMPLATE, ({"instanceChargeType": "PrePaid"}, "PrePaid")),
    *_cases(
        "hpc-compute-not-prepaid",
        kinds.QUEUE,
        ({"computeNodes": [{"instanceType": "ecs.c8ae.4xlarge", "instanceChargeType": "PrePaid"}]}, "PrePaid"),
    ),
    *_cases(
        "hpc-compute-released",
        kinds.POOL,
        ({"idleSeconds": None}, "no idle time"),
        ({"idleSeconds": 0}, "no idle time"),
        ({"idleSeconds": 86401}, "idle time of 86401 s is above 3600 s"),
        ({"autoReleaseSeconds": None}, "no release time"),
        ({"autoReleaseSeconds": 90000}, "release time of 90000 s"),
    ),
    *_cases(
        "hpc-compute-released",
        kinds.INSTANCE,
        ({"tags": COMPUTE_TAGS}, "a compute node without autoReleaseTime"),
    ),
    *_cases("hpc-compute-released", kinds.QUEUE, ({"enableScaleIn": None}, "idle nodes are never released")),
    Case("hpc-compute-released", kinds.POOL, {}, "no longest lifetime", config={"requireMaxLifetime": True}),
    Case("hpc-instance-types", kinds.POOL, {}, "none of the allowed types", config={"allowed": ["ecs.c9*"]}),
    Case("hpc-instance-types", kinds.SCALING, {}, "is denied here", config={"denied": ["ecs.c8ae.*"]}),
    Case("hpc-regions", kinds.POOL, {}, "region cn-hangzhou; allowed: cn-beijing", config={"allowed": ["cn-beijing"]}),
    Case("hpc-regions", kinds.VSWITCH, {}, "zoneId cn-hangzhou-j is in none", config={"allowed": ["cn-beijing"]}),
    Case(
        "hpc-regions",
        kinds.GROUP,
        {"_region": "eu-central-1"},
        "its provider works in eu-central-1",
        config={"allowed": ["cn-beijing"]},
    ),
    Case("hpc-budget-hour", kinds.VPC, {}, "the worst hour is 100.00 CNY, above the cap of", config={"maxHourly": 99}),
    Case(
        "hpc-budget-hour",
        kinds.SCALING_GROUP,
        {"launchTemplateOverrides": [{"instanceType": "ecs.c8ae.4xlarge"}], "maxSize": 1000},
        "above the cap of 500.00 CNY; subject",
        config={"maxHourly": 500},
    ),
    Case(
        "hpc-budget-hour",
        kinds.SCALING_GROUP,
        {"maxSize": 1000},
        "above the cap of 500.00 CNY; subject",
        config={"maxHourly": 500},
        others=(resource(kinds.SCALING, "sc", _sources={"scalingGroupId": (urn(kinds.SCALING_GROUP, "subject"),)}),),
    ),
    Case(
        "hpc-budget-hour",
        kinds.CLUSTER,
        {"priceKnown": False},
        "could not be verified: the worst hour has a part that is not known",
        config={"maxHourly": 5000},
    ),
    Case(
        "hpc-budget-hour",
        kinds.INSTANCE,
        {"instanceType": "ecs.nosuch.large", "_parent": ""},
        "ecs.nosuch.large has no known price",
        config={"maxHourly": 5000},
    ),
    Case("hpc-budget-month", kinds.VPC, {}, "the expected month is 5,000.00 CNY", config={"maxMonthly": 4999.99}),
    Case(
        "hpc-budget-month",
        kinds.CLUSTER,
        {"expectedMonthly": None},
        "`expectedMonthly` is not known",
        config={"maxMonthly": 99999},
    ),
    *_cases(
        "hpc-judged-types",
        kinds.INSTANCE_SET,
        ({}, "no rule looks at alicloud:ecs/ecsInstanceSet:EcsInstanceSet"),
    ),
    *_cases("hpc-judged-types", "alicloud:ecs/disk:Disk", ({}, "use alicloud.ecs.EcsDisk")),
    Case("hpc-size", kinds.POOL, {"max": 2000}, "the number of compute nodes is 2,008.00 nodes"),
    Case("hpc-size", kinds.POOL, {"vcpusPerNode": 20000}, "the number of vCPUs is 160,128.00 vCPUs"),
    Case("hpc-size", kinds.POOL, {"vcpusPerNode": None}, "`vcpusPerNode` is not known"),
]

#: Inputs that are not known at a preview, where a rule needs them: never a pass.
UNKNOWNS: list[Case] = [
    Case(rule, kind, changes, says, config=config)
    for rule, kind, changes, says, config in [
        ("hpc-erdma-capable-types", kinds.POOL, {"instanceTypes": [UNKNOWN]}, "`instanceTypes[0]` is known only", {}),
        ("hpc-erdma-capable-types", kinds.POOL, {"interconnect": UNKNOWN}, "`interconnect`", {}),
        (
            "hpc-erdma-capable-types",
            kinds.SCALING,
            {"instanceTypes": None, "instanceTypeOverrides": UNKNOWN},
            "`instanceTypeOverrides",
            {},
        ),
        (
            "hpc-erdma-capable-types",
            kinds.SCALING,
            {"instanceTypes": None, "customPriorities": UNKNOWN},
            "`customPriorities",
            {},
        ),
        ("hpc-erdma-traffic-mode", kinds.SCALING, {"networkInterfaces": UNKNOWN}, "`networkInterfaces", {}),
        ("hpc-ram-actions", kinds.RAM_POLICY, {"policyDocument": None, "statements": UNKNOWN}, "`statements", {}),
        ("hpc-disks-encrypted", kinds.TEMPLATE, {"dataDisks": UNKNOWN}, "`dataDisks", {}),
        ("hpc-erdma-capable-types", kinds.QUEUE, {"computeNodes": UNKNOWN}, "`computeNodes", {}),
        ("hpc-erdma-capable-types", kinds.INSTANCE, {"networkInterfaces": UNKNOWN}, "`networkInterfaces", {}),
        ("hpc-erdma-capable-members", kinds.TEMPLATE, {"instanceType": UNKNOWN}, "`instanceType`", {}),
        (
            "hpc-erdma-capable-members",
            kinds.PROVISIONING,
            {"launchTemplateConfigs": UNKNOWN, "_parent": urn(kinds.POOL, "c-pool-mpi")},
            "`launchTemplateConfigs",
            {},
        ),
        (
            "hpc-budget-hour",
            kinds.SCALING_GROUP,
            {"launchTemplateOverrides": UNKNOWN},
            "`launchTemplateOverrides",
            {"maxHourly": 9999},
        ),
        ("hpc-erdma-traffic-mode", kinds.INTERFACE, {"networkInterfaceTrafficMode": UNKNOWN}, "TrafficMode`", {}),
        ("hpc-port-range-width", kinds.GROUP_RULE, {"portRange": UNKNOWN}, "`portRange`", {}),
        ("hpc-protocol-all", kinds.GROUP_RULE, {"ipProtocol": UNKNOWN}, "`ipProtocol`", {}),
        ("hpc-open-to-world", kinds.GROUP_RULE, {"cidrIp": UNKNOWN}, "`cidrIp`", {}),
        ("hpc-ssh-sources", kinds.GROUP_RULE, {"portRange": "22/22", "cidrIp": UNKNOWN}, "`cidrIp`", {}),
        ("hpc-sources-inside-cluster", kinds.GROUP_RULE, {**GROUP_SOURCE, "cidrIp": UNKNOWN}, "`cidrIp`", {}),
        ("hpc-source-groups", kinds.GROUP_RULE, {"_sources": {}}, "`sourceSecurityGroupId`", {}),
        ("hpc-inner-access", kinds.GROUP, {"innerAccessPolicy": UNKNOWN}, "`innerAccessPolicy`", {}),
        ("hpc-keys-not-passwords", kinds.INSTANCE, {"passwordInherit": UNKNOWN}, "`passwordInherit`", {}),
        ("hpc-metadata-tokens", kinds.TEMPLATE, {"httpTokens": UNKNOWN}, "`httpTokens`", {}),
        ("hpc-no-public-address", kinds.TEMPLATE, {"internetMaxBandwidthOut": UNKNOWN}, "BandwidthOut`", {}),
        ("hpc-no-elastic-address", kinds.ADDRESS_BINDING, {"_sources": {}}, "`instanceId`", {}),
        ("hpc-ram-actions", kinds.RAM_POLICY, {"policyDocument": UNKNOWN}, "`policyDocument`", {}),
        (
            "hpc-ram-system-policies",
            kinds.RAM_ATTACHMENTS[0],
            {"policyType": "System", "policyName": UNKNOWN},
            "`policyName`",
            {},
        ),
        ("hpc-disks-encrypted", kinds.TEMPLATE, {"systemDisk": {"encrypted": UNKNOWN}}, "`systemDisk.encrypted`", {}),
        ("hpc-disks-encrypted", kinds.INSTANCE, {"dataDisks": UNKNOWN}, "`dataDisks", {}),
        ("hpc-nas-encrypted", kinds.FILE_SYSTEM, {"encryptType": UNKNOWN}, "`encryptType`", {}),
        ("hpc-nas-sources", kinds.NAS_RULE, {"sourceCidrIp": UNKNOWN}, "`sourceCidrIp`", {}),
        (
            "hpc-nas-without-network",
            kinds.FILE_SYSTEM,
            {"fileSystemType": UNKNOWN},
            "`fileSystemType`",
            {},
        ),
        ("hpc-keep-data", kinds.INSTANCE, {"tags": UNKNOWN}, "`tags`", {}),
        ("hpc-tags", kinds.DISK, {"tags": UNKNOWN}, "`tags`", {}),
        ("hpc-compute-not-prepaid", kinds.POOL, {"charge": UNKNOWN}, "`charge`", {}),
        ("hpc-compute-released", kinds.POOL, {"idleSeconds": UNKNOWN}, "`idleSeconds`", {}),
        ("hpc-instance-types", kinds.POOL, {"instanceTypes": UNKNOWN}, "`instanceTypes`", {}),
        ("hpc-regions", kinds.VSWITCH, {"zoneId": UNKNOWN}, "`zoneId`", {"allowed": ["cn-hangzhou"]}),
        ("hpc-judged-types", kinds.INSTANCE_SET, {"instanceType": UNKNOWN}, "EcsInstanceSet", {}),
        ("hpc-budget-hour", kinds.CLUSTER, {"worstHourly": UNKNOWN}, "`worstHourly`", {"maxHourly": 9999}),
        ("hpc-budget-month", kinds.CLUSTER, {"expectedMonthly": UNKNOWN}, "Monthly`", {"maxMonthly": 99999}),
        ("hpc-size", kinds.POOL, {"max": UNKNOWN}, "`max`", {}),
    ]
]
