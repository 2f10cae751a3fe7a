"""A living management node becomes a subscription and pay-as-you-go again, in place."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from localcloud.api.client import LocalCloud
from tests.engine.conftest import Stack
from tests.engine.test_life_cycle import cloud_kinds, instances, up

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def charge_types(cloud: LocalCloud) -> dict[str, str]:
    return {document["hostname"]: document["charge_type"] for document in cloud.snapshot()["resources"]["instance"]}


def test_from_pay_as_you_go_to_subscription_and_back(life: Stack, plugins: str) -> None:
    with ExitStack() as stack:
        session = life.session(stack)
        cloud = session.cloud
        assert cloud is not None
        up(session)
        before = instances(cloud)
        management = next(name for name in before if not name.startswith("login"))
        assert charge_types(cloud)[management] == "PostPaid"

    for charge, expected in (("prepaid", "PrePaid"), ("payg", "PostPaid")):
        life.cluster["management"]["charge"] = charge
        with ExitStack() as stack:
            session = life.session(stack)
            cloud = session.cloud
            assert cloud is not None
            planned = session.deployment.preview()
            assert ("alicloud:ecs/instance:Instance", "update") in cloud_kinds(planned)
            assert not {operation for _, operation in cloud_kinds(planned)} - {"update"}, cloud_kinds(planned)
            since = cloud.calls()[-1]["number"]
            up(session)
            assert charge_types(cloud)[management] == expected
            assert instances(cloud) == before, "the instance stays the same one"
            assert cloud.calls("ModifyInstanceChargeType", since=since)
            refused = [call for call in cloud.calls(since=since) if call["status"] != 200]
            assert refused == []
            assert session.deployment.preview().changed == ()

    with ExitStack() as stack:
        session = life.session(stack)
        destroyed = session.deployment.destroy()
        assert destroyed.succeeded, destroyed.first_error
        assert session.cloud is not None
        assert session.cloud.counts() == {}
