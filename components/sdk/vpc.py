"""Virtual Private Cloud."""

# ruff: noqa: E402  (the packages are slimmed before anything of them is imported)

from components.sdk.slim import slim

slim("vpc")

from pulumi_alicloud.vpc.nat_gateway import NatGateway
from pulumi_alicloud.vpc.network import Network
from pulumi_alicloud.vpc.snat_entry import SnatEntry
from pulumi_alicloud.vpc.switch import Switch

__all__ = ["NatGateway", "Network", "SnatEntry", "Switch"]
