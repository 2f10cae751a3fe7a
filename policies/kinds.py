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

INSTANCE_SET = "alicloud:ecs/ecsInstanceSet:EcsInstanceSet"

_POOL_INSTEAD = "a pool in the stack file"
_INSTANCE_INSTEAD = "alicloud.ecs.Instance"

#: Types that start machines, reserve them, or do in an older way what rules judge, and whose inputs no rule reads, with
#: what to use instead. Without a rule about them, caps and all other rules could be gone round by choosing such a type.
UNJUDGED: Mapping[str, str] = {
    INSTANCE_SET: f"{_INSTANCE_INSTEAD}, or {_POOL_INSTEAD}",
    "alicloud:ecs/disk:Disk": "alicloud.ecs.EcsDisk",
    "alicloud:vpc/networkInterface:NetworkInterface": "alicloud.ecs.EcsNetworkInterface",
    "alicloud:ecs/capacityReservation:CapacityReservation": _POOL_INSTEAD,
    "alicloud:ecs/dedicatedHost:DedicatedHost": _POOL_INSTEAD,
    "alicloud:ecs/elasticityAssurance:ElasticityAssurance": _POOL_INSTEAD,
    "alicloud:ecs/reservedInstance:ReservedInstance": _POOL_INSTEAD,
    "alicloud:ehpc/cluster:Cluster": "the cluster of the stack file",
    "alicloud:ehpc/clusterV2:ClusterV2": "the cluster of the stack file",
    "alicloud:cs/edgeKubernetes:EdgeKubernetes": _POOL_INSTEAD,
    "alicloud:cs/kubernetes:Kubernetes": _POOL_INSTEAD,
    "alicloud:cs/managedKubernetes:ManagedKubernetes": _POOL_INSTEAD,
    "alicloud:cs/nodePool:NodePool": _POOL_INSTEAD,
    "alicloud:cs/serverlessKubernetes:ServerlessKubernetes": _POOL_INSTEAD,
    "alicloud:eci/containerGroup:ContainerGroup": _POOL_INSTEAD,
    "alicloud:ess/eciScalingConfiguration:EciScalingConfiguration": "alicloud.ess.ScalingConfiguration",
    "alicloud:eds/desktop:Desktop": _INSTANCE_INSTEAD,
    "alicloud:emr/cluster:Cluster": _POOL_INSTEAD,
    "alicloud:emrv2/cluster:Cluster": _POOL_INSTEAD,
    "alicloud:ens/instance:Instance": _INSTANCE_INSTEAD,
    "alicloud:simpleapplicationserver/instance:Instance": _INSTANCE_INSTEAD,
}

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
