"""What makes this cloud behave: stock, quotas, throttling, delays, faults. Kept in the database."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(ge=0, le=86_400 * 366)]
Count = Annotated[int, Field(ge=0)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Stock(_Model):
    """How many instances of a type can run at once in a zone; `*` matches everything."""

    zone: str = "*"
    instance_type: str = "*"
    charge: Literal["payg", "spot", "*"] = "*"
    count: Count


class Quotas(_Model):
    """Limits of the account. Defaults are those of a new account where a help page names one."""

    instances: Count = 100_000
    vcpus: Count = 10_000_000
    spot_vcpus: Count = 10_000_000
    vpcs: Count = 10
    vswitches_per_vpc: Count = 150
    security_groups: Count = 100
    rules_per_security_group: Count = 200
    security_groups_per_interface: Count = 10
    network_interfaces: Count = 200_000
    eips: Count = 20
    launch_templates: Count = 50
    launch_template_versions: Count = 50
    deployment_sets: Count = 100
    general_file_systems: Count = 20
    extreme_file_systems: Count = 200
    mount_targets_per_file_system: Count = 2
    access_groups: Count = 20
    access_rules_per_group: Count = 300


class Fault(_Model):
    """The next `count` calls of an action fail; `when=after` does the work and loses the answer."""

    action: str
    code: str
    message: str = "The request has failed due to a fault that was asked for."
    status: Annotated[int, Field(ge=400, le=599)] = 500
    count: Annotated[int, Field(ge=1)] = 1
    when: Literal["before", "after"] = "before"


class Knobs(_Model):
    """All knobs. Times in seconds; `throttle` is calls a minute by action, `latency` seconds by action (`*`: any)."""

    stock: list[Stock] = Field(default_factory=list)
    quotas: Quotas = Field(default_factory=Quotas)
    throttle: dict[str, Count] = Field(default_factory=dict)
    latency: dict[str, Seconds] = Field(default_factory=dict)
    describe_lag: Seconds = 0.0
    instances_per_minute: Count = 5_000
    nas_creation: Seconds = 1.0
    instance_start: Seconds = 1.0
    #: The real cloud refuses to release an instance in its first moments (`IncorrectInstanceStatus.Initializing`).
    delete_while_pending: bool = True
    instance_stop: Seconds = 0.5
    image_creation: Seconds = 1.0
    spot_notice: Seconds = 300.0
    spot_price_ratio: Annotated[float, Field(gt=0, le=1)] = 0.3
    faults: list[Fault] = Field(default_factory=list)

    def stock_of(self, zone: str, instance_type: str, charge: str) -> int | None:
        """Capacity for this combination, most specific entry first; None is without limit."""
        best: tuple[int, int] | None = None
        for entry in self.stock:
            score = 0
            for have, want, weight in (
                (entry.instance_type, instance_type, 4),
                (entry.zone, zone, 2),
                (entry.charge, charge, 1),
            ):
                if have == want:
                    score += weight
                elif have != "*":
                    break
            else:
                if best is None or score >= best[0]:
                    best = (score, entry.count)
        return None if best is None else best[1]
