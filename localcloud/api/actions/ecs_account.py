"""What the account may have and has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localcloud.api.call import Call
from localcloud.api.errors import invalid
from localcloud.api.registry import read


def used_vcpus(call: Call, *, spot: bool) -> int:
    """vCPUs of all spot instances of a region, or of all others."""
    total = 0
    zones = call.cloud.offers.zones(call.region)
    for key, count in call.store.tally("instance", "stock_key").items():
        zone, name, charge = key.split("|")
        if zone in zones and (charge == "spot") == spot:
            total += count * call.cloud.offers.instance_type(name).vcpus
    return total


def _sizes(call: Call) -> int:
    return sum(doc["size"] for doc in call.store.find("disk", {"type": "data", "region": call.region}))


#: Values by attribute. Of Cloud Assistant and dedicated hosts this cloud has none.
_ATTRIBUTES: dict[str, Callable[[Call], list[Any]]] = {
    "instance-network-type": lambda _: ["vpc"],
    "max-security-groups": lambda call: [call.cloud.knobs.quotas.security_groups],
    "max-elastic-network-interfaces": lambda call: [call.cloud.knobs.quotas.network_interfaces],
    "max-postpaid-instance-vcpu-count": lambda call: [call.cloud.knobs.quotas.vcpus],
    "max-spot-instance-vcpu-count": lambda call: [call.cloud.knobs.quotas.spot_vcpus],
    "used-postpaid-instance-vcpu-count": lambda call: [used_vcpus(call, spot=False)],
    "used-spot-instance-vcpu-count": lambda call: [used_vcpus(call, spot=True)],
    "used-postpaid-yundisk-capacity": lambda call: [_sizes(call)],
    "max-dedicated-hosts": lambda _: [0],
    "supported-postpaid-instance-types": lambda call: [kind.name for kind in call.cloud.offers.instance_types()],
    "max-axt-command-count": lambda _: [0],
    "max-axt-invocation-daily": lambda _: [0],
    "real-name-authentication": lambda _: ["yes"],
    "max-cloud-assistant-activation-count": lambda _: [0],
}
_MOST = 8


@read("ecs", "DescribeAccountAttributes", "RegionId ZoneId AttributeName.N")
def describe_account_attributes(call: Call) -> dict[str, Any]:
    """Quotas of the account and what is used of them: those named, or all."""
    zone = call.params.text("ZoneId")
    if zone:
        call.cloud.offers.check_zone(call.region, zone)
    named = list(dict.fromkeys(call.params.texts("AttributeName")))
    unknown = [name for name in named if name not in _ATTRIBUTES]
    if unknown or len(named) > _MOST:
        raise invalid("AttributeName", f"Not known: {', '.join(unknown)}." if unknown else f"At most {_MOST}.")
    return {
        "AccountAttributeItems": {
            "AccountAttributeItem": [
                {
                    "AttributeName": name,
                    "AttributeValues": {"ValueItem": [{"Value": str(value)} for value in _ATTRIBUTES[name](call)]},
                }
                for name in named or _ATTRIBUTES
            ]
        }
    }
