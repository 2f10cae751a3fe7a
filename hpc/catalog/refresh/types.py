"""Instance types and where they are sold: DescribeInstanceTypes and DescribeAvailableResource."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpc.catalog import tables
from hpc.catalog.override import TypeOverride
from hpc.catalog.refresh.clients import Clients, Failures, call, ecs_models

#: Page size that every version of the API takes.
_PAGE = 100

#: The API counts bandwidth in kbit/s, 1,024,000 of which it sells as 1 Gbit/s.
_KBPS_PER_GBPS = 1_024_000

_IN_STOCK = ("WithStock", "ClosedWithStock")


def read_types(clients: Clients, failures: Failures) -> tuple[TypeOverride, ...]:
    """All types with eRDMA, and all types of the families that the shipped data know."""
    found: dict[str, TypeOverride] = {}
    for row in _listed(clients, failures, "types with eRDMA", minimum_eri_quantity=1):
        kind = _type_of(row)
        # The filter itself says that there is at least one, also where the answer leaves the field out.
        found[kind.name] = kind.model_copy(update={"eri_quantity": max(1, kind.eri_quantity or 0)})
    if not failures.hopeless:
        known = tables.families()
        for row in _listed(clients, failures, "all types"):
            kind = _type_of(row)
            if kind.family in known:
                found.setdefault(kind.name, kind)
    return tuple(found[name] for name in sorted(found))


def _listed(clients: Clients, failures: Failures, what: str, **request: Any) -> Iterator[Any]:
    token: str | None = None
    seen: set[str] = set()
    while True:
        asked = ecs_models().DescribeInstanceTypesRequest(max_results=_PAGE, next_token=token, **request)
        try:
            body = call(clients, clients.ecs.describe_instance_types, asked).body
        except Exception as error:
            failures.add(what, error)
            return
        rows = body.instance_types.instance_type if body.instance_types else None
        yield from rows or ()
        token = body.next_token
        if not token:
            return
        if token in seen:
            failures.note("RepeatedNextToken", what, "the list does not end; what was read until then is used")
            return
        seen.add(token)


def _type_of(row: Any) -> TypeOverride:
    options = row.cpu_options
    bandwidth = row.instance_bandwidth_tx
    return TypeOverride(
        name=row.instance_type_id,
        family=row.instance_type_family or row.instance_type_id.rpartition(".")[0],
        vcpus=row.cpu_core_count,
        physical_cores=options.core if options else None,
        threads_per_core=options.threads_per_core if options else None,
        memory_gib=row.memory_size,
        architecture="arm64" if (row.cpu_architecture or "").upper().startswith("ARM") else "x86_64",
        eri_quantity=row.eri_quantity,
        network_gbps=None if not bandwidth else round(bandwidth / _KBPS_PER_GBPS, 2),
        jumbo_frames=row.jumbo_frame_support,
    )


def read_stock(clients: Clients, region: str, failures: Failures) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Zones of a region, and the zones that have each instance type in stock for pay-as-you-go."""
    request = ecs_models().DescribeAvailableResourceRequest(
        region_id=region,
        destination_resource="InstanceType",
        instance_charge_type="PostPaid",
        io_optimized="optimized",
    )
    try:
        body = call(clients, clients.ecs.describe_available_resource, request).body
    except Exception as error:
        failures.add(region, error)
        return (), {}
    zones: list[str] = []
    stock: dict[str, list[str]] = {}
    for zone in (body.available_zones.available_zone or ()) if body.available_zones else ():
        zones.append(zone.zone_id)
        for resource in (zone.available_resources.available_resource or ()) if zone.available_resources else ():
            supported = resource.supported_resources
            for row in (supported.supported_resource or ()) if supported else ():
                if row.status == "Available" and (row.status_category is None or row.status_category in _IN_STOCK):
                    stock.setdefault(row.value, []).append(zone.zone_id)
    return tuple(sorted(zones)), {name: tuple(sorted(where)) for name, where in stock.items()}
