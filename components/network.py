"""The network of a cluster: a VPC, a vSwitch in each zone and, if asked, a NAT gateway; or existing ones by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from components.sdk import ecs, vpc
from hpc.spec.addresses import vswitch_cidrs
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import cluster_tags

#: Peak bandwidth of the NAT gateway's address, Mbit/s. It is paid by traffic, so the peak itself costs nothing.
NAT_BANDWIDTH_MBPS = 100


@dataclass(frozen=True, slots=True)
class NetworkArgs:
    """Arguments of `Network`.

    Attributes:
        spec: the cluster.
    """

    spec: ClusterSpec


class Network(pulumi.ComponentResource):
    """VPC and vSwitches.

    Attributes:
        vpc_id: id of the VPC, made or adopted.
        vswitch_ids: id of each zone's vSwitch, by zone, in the order of the stack file.
        nat_address: public address of the NAT gateway, if there is one.
    """

    vpc_id: pulumi.Output[str]
    vswitch_ids: Mapping[str, pulumi.Output[str]]
    nat_address: pulumi.Output[str] | None

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec = args.spec
        super().__init__("hpc:network:Network", name, {"zones": list(spec.zones)}, opts)
        self.vpc_id = self._vpc(name, spec)
        self.vswitch_ids = self._vswitches(name, spec)
        self.nat_address = self._nat(name, spec) if spec.network.nat else None
        self.register_outputs({"vpcId": self.vpc_id, "vswitchIds": dict(self.vswitch_ids)})

    def _vpc(self, name: str, spec: ClusterSpec) -> pulumi.Output[str]:
        if spec.network.vpc_id:
            return pulumi.Output.from_input(spec.network.vpc_id)
        made = vpc.Network(
            f"{name}-vpc",
            vpc_name=f"{spec.name}-vpc",
            description=f"HPC cluster {spec.name}",
            cidr_block=str(spec.network.cidr),
            enable_ipv6=True if spec.network.ipv6 else None,
            tags=cluster_tags(spec, "network"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        return made.id

    def _vswitches(self, name: str, spec: ClusterSpec) -> dict[str, pulumi.Output[str]]:
        ids: dict[str, pulumi.Output[str]] = {}
        cidrs = vswitch_cidrs(spec)
        for index, zone in enumerate(spec.zones):
            if adopted := spec.network.vswitch_ids.get(zone):
                ids[zone] = pulumi.Output.from_input(adopted)
                continue
            made = vpc.Switch(
                f"{name}-vswitch-{zone}",
                vswitch_name=f"{spec.name}-{zone}",
                description=f"HPC cluster {spec.name}, zone {zone}",
                vpc_id=self.vpc_id,
                zone_id=zone,
                cidr_block=str(cidrs[zone]),
                enable_ipv6=True if spec.network.ipv6 else None,
                ipv6_cidr_block_mask=index if spec.network.ipv6 else None,
                tags=cluster_tags(spec, "network"),
                opts=pulumi.ResourceOptions(parent=self),
            )
            ids[zone] = made.id
        return ids

    def _nat(self, name: str, spec: ClusterSpec) -> pulumi.Output[str]:
        child = pulumi.ResourceOptions(parent=self)
        address = ecs.EipAddress(
            f"{name}-nat-address",
            address_name=f"{spec.name}-nat",
            bandwidth=str(NAT_BANDWIDTH_MBPS),
            internet_charge_type="PayByTraffic",
            payment_type="PayAsYouGo",
            tags=cluster_tags(spec, "network"),
            opts=child,
        )
        gateway = vpc.NatGateway(
            f"{name}-nat",
            nat_gateway_name=f"{spec.name}-nat",
            description=f"HPC cluster {spec.name}: outbound only",
            vpc_id=self.vpc_id,
            vswitch_id=self.vswitch_ids[spec.zones[0]],
            nat_type="Enhanced",
            payment_type="PayAsYouGo",
            internet_charge_type="PayByLcu",
            tags=cluster_tags(spec, "network"),
            opts=child,
        )
        bound = ecs.EipAssociation(
            f"{name}-nat-address-binding",
            allocation_id=address.id,
            instance_id=gateway.id,
            instance_type="Nat",
            opts=child,
        )
        for zone, vswitch_id in self.vswitch_ids.items():
            vpc.SnatEntry(
                f"{name}-snat-{zone}",
                snat_entry_name=f"{spec.name}-{zone}",
                snat_table_id=gateway.snat_table_ids,
                snat_ip=address.ip_address,
                source_vswitch_id=vswitch_id,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[bound]),
            )
        return address.ip_address
