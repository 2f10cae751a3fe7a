"""Addresses of the local cloud and which of them no packet may take out of this machine.

The service addresses are the ones that Alibaba Cloud itself uses inside a VPC or lie in the same range
(100.100.0.0/16); every VPC namespace has all of them.
"""

from __future__ import annotations

import ipaddress

#: Metadata service.
METADATA = "100.100.100.200"
#: Resolver.
RESOLVER = "100.100.2.136"
#: Package mirror, `mirrors.cloud.aliyuncs.com`.
MIRROR = "100.100.2.148"
#: API endpoints (`ecs.<region>.aliyuncs.com` and the like), forwarded to the API server's port.
API = "100.100.2.150"
#: NAS mount targets.
NAS = "100.100.2.151"

SERVICES = (METADATA, RESOLVER, MIRROR, API, NAS)

#: Range of elastic IP addresses: benchmark range of RFC 2544, on no public network.
EIP_RANGE = "198.18.0.0/15"
#: How this machine looks to a host that it reaches over an elastic IP address (TEST-NET-1 of RFC 5737).
MACHINE = "192.0.2.10"
#: Links between this machine and the VPC namespaces; the first address is this machine's end of every link.
LINK_RANGE = "169.254.80.0/20"
LINK_MACHINE = "169.254.80.1"

#: Where a host with NAT or an elastic IP address still cannot go: the networks around this machine.
PRIVATE_RANGES = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16")


def gateway(cidr: str) -> str:
    """Gateway of a vSwitch: the last usable address but one, for 10.0.0.0/24 10.0.0.253.

    >>> gateway("10.16.0.0/20")
    '10.16.15.253'
    """
    return str(ipaddress.IPv4Network(cidr).broadcast_address - 2)


def prefix_length(cidr: str) -> int:
    """Length of the network part of a CIDR block."""
    return ipaddress.IPv4Network(cidr).prefixlen


def holds(cidr: str, address: str) -> bool:
    """Whether the block has the address in it."""
    return ipaddress.IPv4Address(address) in ipaddress.IPv4Network(cidr, strict=False)
