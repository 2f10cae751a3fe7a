"""Taking over what a killed run had begun to make: the cloud may have it, and nobody has written down its id.

Without this the next run makes it a second time, or fails since its name is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpc.deploy.rpc import Api
from hpc.errors import CannotRunError


@dataclass(frozen=True, slots=True)
class Lookup:
    """How a resource that was asked for is found again.

    Attributes:
        product, action: the API call that lists such resources.
        asked: its parameters; `{input}` stands for an input of the resource.
        path: keys that lead to the list in the answer.
        match: fields of an entry that have to be as the resource's inputs.
        identity: the provider's id of it, from fields of the entry and inputs.
    """

    product: str
    action: str
    asked: Mapping[str, str]
    path: tuple[str, ...]
    identity: str
    match: Mapping[str, str] = field(default_factory=dict)


#: Names are the project's own and unique within a cluster. What is not here is made again without harm: rules are
#: taken twice by the API without becoming two.
LOOKUPS: Mapping[str, Lookup] = {
    "alicloud:vpc/network:Network": Lookup(
        "vpc", "DescribeVpcs", {"VpcName": "{vpcName}"}, ("Vpcs", "Vpc"), "{VpcId}", {"VpcName": "{vpcName}"}
    ),
    "alicloud:vpc/switch:Switch": Lookup(
        "vpc",
        "DescribeVSwitches",
        {"VpcId": "{vpcId}", "VSwitchName": "{vswitchName}"},
        ("VSwitches", "VSwitch"),
        "{VSwitchId}",
        {"VSwitchName": "{vswitchName}"},
    ),
    "alicloud:vpc/natGateway:NatGateway": Lookup(
        "vpc",
        "DescribeNatGateways",
        {"VpcId": "{vpcId}", "Name": "{natGatewayName}"},
        ("NatGateways", "NatGateway"),
        "{NatGatewayId}",
        {"Name": "{natGatewayName}"},
    ),
    "alicloud:vpc/snatEntry:SnatEntry": Lookup(
        "vpc",
        "DescribeSnatTableEntries",
        {"SnatTableId": "{snatTableId}"},
        ("SnatTableEntries", "SnatTableEntry"),
        "{snatTableId}:{SnatEntryId}",
        {"SourceVSwitchId": "{sourceVswitchId}"},
    ),
    "alicloud:ecs/eipAddress:EipAddress": Lookup(
        "vpc",
        "DescribeEipAddresses",
        {"EipName": "{addressName}"},
        ("EipAddresses", "EipAddress"),
        "{AllocationId}",
        {"Name": "{addressName}"},
    ),
    "alicloud:ecs/eipAssociation:EipAssociation": Lookup(
        "vpc",
        "DescribeEipAddresses",
        {"AllocationId": "{allocationId}"},
        ("EipAddresses", "EipAddress"),
        "{allocationId}:{instanceId}",
        {"InstanceId": "{instanceId}"},
    ),
    "alicloud:ecs/securityGroup:SecurityGroup": Lookup(
        "ecs",
        "DescribeSecurityGroups",
        {"VpcId": "{vpcId}", "SecurityGroupName": "{securityGroupName}"},
        ("SecurityGroups", "SecurityGroup"),
        "{SecurityGroupId}",
        {"SecurityGroupName": "{securityGroupName}"},
    ),
    "alicloud:ecs/ecsKeyPair:EcsKeyPair": Lookup(
        "ecs",
        "DescribeKeyPairs",
        {"KeyPairName": "{keyPairName}"},
        ("KeyPairs", "KeyPair"),
        "{KeyPairName}",
        {"KeyPairName": "{keyPairName}"},
    ),
    "alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate": Lookup(
        "ecs",
        "DescribeLaunchTemplates",
        {"LaunchTemplateName.1": "{launchTemplateName}"},
        ("LaunchTemplateSets", "LaunchTemplateSet"),
        "{LaunchTemplateId}",
        {"LaunchTemplateName": "{launchTemplateName}"},
    ),
    "alicloud:ecs/ecsDeploymentSet:EcsDeploymentSet": Lookup(
        "ecs",
        "DescribeDeploymentSets",
        {"DeploymentSetName": "{deploymentSetName}"},
        ("DeploymentSets", "DeploymentSet"),
        "{DeploymentSetId}",
        {"DeploymentSetName": "{deploymentSetName}"},
    ),
    "alicloud:ecs/instance:Instance": Lookup(
        "ecs",
        "DescribeInstances",
        {"VSwitchId": "{vswitchId}", "InstanceName": "{instanceName}"},
        ("Instances", "Instance"),
        "{InstanceId}",
        {"InstanceName": "{instanceName}"},
    ),
    "alicloud:nas/fileSystem:FileSystem": Lookup(
        "nas",
        "DescribeFileSystems",
        {"FileSystemType": "{fileSystemType}", "PageSize": "100"},
        ("FileSystems", "FileSystem"),
        "{FileSystemId}",
        {"Description": "{description}"},
    ),
    "alicloud:nas/mountTarget:MountTarget": Lookup(
        "nas",
        "DescribeMountTargets",
        {"FileSystemId": "{fileSystemId}"},
        ("MountTargets", "MountTarget"),
        "{fileSystemId}:{MountTargetDomain}",
        {"VswId": "{vswitchId}"},
    ),
    "alicloud:nas/accessGroup:AccessGroup": Lookup(
        "nas",
        "DescribeAccessGroups",
        {"AccessGroupName": "{accessGroupName}", "FileSystemType": "{fileSystemType}"},
        ("AccessGroups", "AccessGroup"),
        "{accessGroupName}:{fileSystemType}",
        {"AccessGroupName": "{accessGroupName}"},
    ),
    "alicloud:ram/role:Role": Lookup("ram", "GetRole", {"RoleName": "{roleName}"}, ("Role",), "{RoleName}"),
    "alicloud:ram/policy:Policy": Lookup(
        "ram", "GetPolicy", {"PolicyName": "{policyName}", "PolicyType": "Custom"}, ("Policy",), "{PolicyName}"
    ),
    "alicloud:ram/rolePolicyAttachment:RolePolicyAttachment": Lookup(
        "ram",
        "ListPoliciesForRole",
        {"RoleName": "{roleName}"},
        ("Policies", "Policy"),
        "role:{policyName}:{policyType}:{roleName}",
        {"PolicyName": "{policyName}"},
    ),
}


def adopt(deployment: Mapping[str, Any], api: Api, told: Callable[[str], None]) -> dict[str, Any]:
    """A deployment without pending operations: what the cloud has of them is a resource in it, the rest is forgotten.

    Args:
        deployment: as the state backend exports it.
        api: asks the cloud.
        told: gets a line for each resource that was found.

    Raises:
        CannotRunError: HPC724, the cloud has more than one that it could be; HPC725, it cannot be asked.
    """
    resources = list(deployment.get("resources", ()))
    known = {(resource["type"], resource.get("id")) for resource in resources}
    for operation in deployment.get("pending_operations") or ():
        resource = operation["resource"]
        if operation["type"] != "creating" or resource["type"] not in LOOKUPS:
            continue
        found = [
            identity
            for identity in _identities(LOOKUPS[resource["type"]], resource.get("inputs", {}), api)
            if (resource["type"], identity) not in known
        ]
        if len(found) > 1:
            raise CannotRunError(
                f"{resource['urn'].split('::')[-1]} may be any of {', '.join(found)}",
                code="HPC724",
                fix="delete those that are not needed, then run `hpc repair` again",
            )
        for identity in found:
            told(f"found {resource['urn'].split('::')[-1]}: {identity}")
            resources.append({**resource, "id": identity, "outputs": {}})
    return {**deployment, "resources": resources, "pending_operations": []}


def _identities(lookup: Lookup, inputs: Mapping[str, Any], api: Api) -> list[str]:
    asked = {name: _filled(template, inputs) for name, template in lookup.asked.items()}
    wanted = {name: _filled(template, inputs) for name, template in lookup.match.items()}
    if any(value is None for value in (*asked.values(), *wanted.values())):
        return []  # it was refused or never sent: a name or a parent is missing
    entries: Any = api.call(lookup.product, lookup.action, {name: str(value) for name, value in asked.items()})
    for key in lookup.path:
        entries = (entries or {}).get(key)
    entries = entries if isinstance(entries, list) else [entries] if entries else []
    matching = [entry for entry in entries if all(entry.get(name) == value for name, value in wanted.items())]
    return [identity for entry in matching if (identity := _filled(lookup.identity, {**inputs, **entry}))]


def _filled(template: str, values: Mapping[str, Any]) -> str | None:
    names = re.findall(r"\{(\w+)\}", template)
    if not all(isinstance(values.get(name), str) and values[name] for name in names):
        return None
    return template.format(**{name: values[name] for name in names})
