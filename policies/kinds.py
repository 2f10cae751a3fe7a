"""Types of resources that rules look at, and what is common to those that make instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policies.model import Resource
from policies.props import Props

# The tags of hpc.spec.names, written again: importing that module loads pydantic, which would double the time in which
# the pack starts. A test holds the two together.
TAG_CLUSTER = "hpc:cluster"
TAG_ROLE = "hpc:role"
TAG_POOL = "hpc:pool"

CLUSTER = "hpc:cluster:Cluster"
POOL = "hpc:pool:Pool"
INSTANCE = "alicloud:ecs/instance:Instance"
TEMPLATE = "alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate"
OLD_TEMPLATE = "alicloud:ecs/launchTemplate:LaunchTemplate"
SCALING = "alicloud:ess/scalingConfiguration:ScalingConfiguration"
SCALING_GROUP = "alicloud:ess/scalingGroup:ScalingGroup"
PROVISIONING = "alicloud:ecs/autoProvisioningGroup:AutoProvisioningGroup"
QUEUE = "alicloud:ehpc/queue:Queue"
INTERFACE = "alicloud:ecs/ecsNetworkInterface:EcsNetworkInterface"
DISK = "alicloud:ecs/ecsDisk:EcsDisk"
GROUP = "alicloud:ecs/securityGroup:SecurityGroup"
GROUP_RULE = "alicloud:ecs/securityGroupRule:SecurityGroupRule"
ADDRESS_BINDING = "alicloud:ecs/eipAssociation:EipAssociation"
FILE_SYSTEM = "alicloud:nas/fileSystem:FileSystem"
NAS_RULE = "alicloud:nas/accessRule:AccessRule"
VPC = "alicloud:vpc/network:Network"
VSWITCH = "alicloud:vpc/switch:Switch"
RAM_POLICY = "alicloud:ram/policy:Policy"
RAM_ATTACHMENTS = (
    "alicloud:ram/rolePolicyAttachment:RolePolicyAttachment",
    "alicloud:ram/userPolicyAttachment:UserPolicyAttachment",
    "alicloud:ram/groupPolicyAttachment:GroupPolicyAttachment",
)
RAM_ROLE = "alicloud:ram/role:Role"
KEY_PAIR = "alicloud:ecs/ecsKeyPair:EcsKeyPair"
ADDRESS = "alicloud:ecs/eipAddress:EipAddress"
NAT = "alicloud:vpc/natGateway:NatGateway"

TEMPLATES = (TEMPLATE, OLD_TEMPLATE)

#: What starts instances and describes them by itself.
MAKERS = (INSTANCE, *TEMPLATES, SCALING)

#: Value of the tag `hpc:interconnect`, by which a hand-made resource says that it has eRDMA or does without.
TAG_INTERCONNECT = "hpc:interconnect"

COMPUTE_ROLE = "compute"

#: Inputs that are lists of maps with an instance type, by type of the resource.
_TYPE_LISTS: Mapping[str, tuple[str, ...]] = {
    SCALING: ("instanceTypeOverrides", "customPriorities"),
    SCALING_GROUP: ("launchTemplateOverrides",),
    PROVISIONING: ("launchTemplateConfigs",),
    QUEUE: ("computeNodes",),
}


def tags(resource: Resource) -> Props:
    """Tags of what a resource makes."""
    return resource.props.part("tags")


def role(resource: Resource) -> str:
    """Role by the tags, empty where there is none. A resource with the tag of a pool is compute."""
    found = tags(resource)
    return found.text(TAG_ROLE) or (COMPUTE_ROLE if found.has(TAG_POOL) else "")


def is_compute(resource: Resource) -> bool:
    """Whether a resource makes compute nodes: pools, scaling, and what its tags say."""
    if resource.type in (POOL, SCALING, SCALING_GROUP, PROVISIONING, QUEUE):
        return True
    return role(resource) == COMPUTE_ROLE


def instance_types(resource: Resource) -> Iterator[str]:
    """Every instance type that a resource may start."""
    props = resource.props
    if resource.type == POOL:
        yield from props.texts("instanceTypes")
        return
    if props.has("instanceType") and resource.type in MAKERS:
        yield props.text("instanceType")
    if resource.type == SCALING:
        yield from props.texts("instanceTypes")
    for name in _TYPE_LISTS.get(resource.type, ()):
        for entry in props.parts(name):
            if entry.has("instanceType"):
                yield entry.text("instanceType")
