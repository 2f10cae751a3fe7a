"""Location service: every endpoint of this cloud is this server."""

from __future__ import annotations

from typing import Any

from localcloud.api.call import Call
from localcloud.api.registry import read

_PRODUCTS = ("ecs", "vpc", "nas", "ram", "ims", "sts", "tag", "location", "bssopenapi")


def _endpoint(call: Call, service: str) -> dict[str, Any]:
    return {
        "Endpoint": call.cloud.endpoint,
        "Id": call.params.text("Id", call.region),
        "Namespace": "",
        "SerivceCode": service,  # spelled so by the real service
        "ServiceCode": service,
        "Type": call.params.text("Type", "openAPI"),
        "Protocols": {"Protocols": ["HTTP"]},
    }


@read("location", "DescribeEndpoints", "Id ServiceCode Type")
def describe_endpoints(call: Call) -> dict[str, Any]:
    """Endpoints of a product in a region."""
    return {"Success": True, "Endpoints": {"Endpoint": [_endpoint(call, call.params.text("ServiceCode"))]}}


@read("location", "DescribeEndpoint", "Id ServiceCode Type Namespace")
def describe_endpoint(call: Call) -> dict[str, Any]:
    """The endpoint of a product in a region."""
    return {"Success": True, **_endpoint(call, call.params.text("ServiceCode"))}


@read("location", "DescribeServices", "Password")
def describe_services(call: Call) -> dict[str, Any]:
    """Products."""
    return {
        "Success": True,
        "TotalCount": len(_PRODUCTS),
        "Services": {"Services": list(_PRODUCTS)},
    }
