"""Login nodes: where people log in, build and submit."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from components.node import NodeArgs, long_lived_node
from components.sdk import ecs
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import cluster_tags, login_names


@dataclass(frozen=True, slots=True)
class LoginArgs:
    """Arguments of `Login`.

    Attributes:
        spec: the cluster.
        image_id: image that the nodes boot at first.
        vswitch_id: where they live.
        security_group_ids: groups of the nodes.
        key_pair_name: key of the nodes.
    """

    spec: ClusterSpec
    image_id: str
    vswitch_id: pulumi.Input[str]
    security_group_ids: tuple[pulumi.Input[str], ...]
    key_pair_name: pulumi.Input[str]


class Login(pulumi.ComponentResource):
    """Login nodes, each with an elastic IP address unless the stack file says otherwise.

    Attributes:
        instances: the instances.
        addresses: private addresses.
        public_addresses: elastic IP addresses; empty without them.
    """

    instances: tuple[ecs.Instance, ...]
    addresses: tuple[pulumi.Output[str], ...]
    public_addresses: tuple[pulumi.Output[str], ...]

    def __init__(self, name: str, args: LoginArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec = args.spec
        super().__init__(
            "hpc:login:Login",
            name,
            {"instanceType": spec.login.instance_type, "count": spec.login.count, "publicIp": spec.login.public_ip},
            opts,
        )
        instances, public = [], []
        for index, host in enumerate(login_names(spec)):
            instance = long_lived_node(
                f"{name}-{index}",
                NodeArgs(
                    spec=spec,
                    node=spec.login,
                    role="login",
                    host=host,
                    image_id=args.image_id,
                    vswitch_id=args.vswitch_id,
                    security_group_ids=args.security_group_ids,
                    key_pair_name=args.key_pair_name,
                    protect=False,
                ),
                parent=self,
            )
            instances.append(instance)
            if spec.login.public_ip:
                public.append(self._address(f"{name}-{index}", host, instance, spec))
        self.instances = tuple(instances)
        self.addresses = tuple(instance.primary_ip_address for instance in instances)
        self.public_addresses = tuple(public)
        self.register_outputs({"addresses": list(self.addresses), "publicAddresses": list(self.public_addresses)})

    def _address(self, name: str, host: str, instance: ecs.Instance, spec: ClusterSpec) -> pulumi.Output[str]:
        address = ecs.EipAddress(
            f"{name}-address",
            address_name=f"{spec.name}-{host}",
            bandwidth=str(spec.login.bandwidth_mbps),
            internet_charge_type="PayByTraffic",
            payment_type="PayAsYouGo",
            tags=cluster_tags(spec, "login"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        ecs.EipAssociation(
            f"{name}-address-binding",
            allocation_id=address.id,
            instance_id=instance.id,
            instance_type="EcsInstance",
            opts=pulumi.ResourceOptions(parent=self),
        )
        return address.ip_address
