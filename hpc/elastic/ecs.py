"""Thin adapter on the official ECS SDK: launch, look, extend, delete; errors become `CloudError` with a class."""

from __future__ import annotations

import base64
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from alibabacloud_credentials.exceptions import CredentialException
from alibabacloud_ecs20140526 import models
from alibabacloud_ecs20140526.client import Client
from alibabacloud_tea_openapi.exceptions import AlibabaCloudException
from alibabacloud_tea_openapi.models import Config
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from hpc.elastic.failures import Failure, classify, is_gone
from hpc.elastic.instances import Instance
from hpc.elastic.launch import Batch, Candidate
from hpc.elastic.settings import PoolSettings
from hpc.elastic.tags import ROLE_COMPUTE, TAG_CLUSTER, TAG_POOL, TAG_ROLE

log = logging.getLogger(__name__)

#: The SDK's models; their annotations say `str` where None is the default, so they are used without.
ecs: Any = models

#: Most ids of one DeleteInstances call, and instances of one page of DescribeInstances.
_ID_LIMIT = 100
_PAGE = 100

#: A throttled minute clears at its end, so a throttled call is tried again for two.
_PATIENCE_S = 120.0

#: How far ahead an automatic release has to be, s, and a margin for clocks that differ.
SHORTEST_RELEASE_S = 30 * 60
_MARGIN_S = 90


class CloudError(Exception):
    """The cloud refused a call, or did not answer.

    Attributes:
        code: error code of the API, `NoAnswer` where there was none.
        failure: its class.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {' '.join(message.split())}")
        self.code = code
        self.failure = classify(code)


@dataclass(frozen=True, slots=True)
class Connection:
    """How the API is reached.

    Attributes:
        region: region id.
        endpoint: `host:port`, or None for the region's own.
        protocol: `https` or `http`.
        ram_role: role of the instance this runs on; None takes the access key of the environment
            (ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET).
    """

    region: str
    endpoint: str | None = None
    protocol: str = "https"
    ram_role: str | None = None

    def client(self) -> Client:
        """A client of the ECS API."""
        config_type: Any = Config
        config = config_type(
            region_id=self.region,
            endpoint=self.endpoint,
            protocol=self.protocol,
            connect_timeout=10_000,
            read_timeout=60_000,
        )
        key, secret = os.environ.get("ALIBABA_CLOUD_ACCESS_KEY_ID"), os.environ.get("ALIBABA_CLOUD_ACCESS_KEY_SECRET")
        if self.ram_role is None and key and secret:
            config.access_key_id, config.access_key_secret = key, secret
            config.security_token = os.environ.get("ALIBABA_CLOUD_SECURITY_TOKEN")
        else:
            from alibabacloud_credentials.client import Client as Credentials
            from alibabacloud_credentials.models import Config as CredentialsConfig

            kind: Any = {"type": "ecs_ram_role", "role_name": self.ram_role, "disable_imds_v1": True}
            config.credential = Credentials(CredentialsConfig(**kind)) if self.ram_role else Credentials()
        return Client(config)


class Cloud:
    """Compute instances of one cluster.

    Args:
        connection: how the API is reached.
        cluster: name of the cluster; only instances with its tag are ever seen or touched.
        sleep: waits; tests pass their own.
    """

    def __init__(self, connection: Connection, cluster: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._region = connection.region
        self._cluster = cluster
        self._client = connection.client()
        self._sleep = sleep
        self._none_shown = False

    def instances(self) -> tuple[Instance, ...]:
        """All compute instances of the cluster, page by page.

        Raises:
            CloudError: the API did not answer or refused; also where it shows nothing because nothing may be seen.
        """
        found: list[Instance] = []
        token: str | None = None
        while True:
            request = ecs.DescribeInstancesRequest(
                region_id=self._region,
                max_results=_PAGE,
                next_token=token,
                tag=[
                    ecs.DescribeInstancesRequestTag(key=TAG_CLUSTER, value=self._cluster),
                    ecs.DescribeInstancesRequestTag(key=TAG_ROLE, value=ROLE_COMPUTE),
                ],
            )
            body = self._call(self._client.describe_instances, request)
            found += [_instance(item) for item in (body.instances.instance or [])]
            token = body.next_token
            if not token:
                break
        if not found and not self._none_shown:
            self._may_look()
        self._none_shown = not found
        return tuple(found)

    def _may_look(self) -> None:
        """Without the right to see instances the API shows an empty list; only a dry run tells that from none.

        Source: https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-describeinstances
        """
        try:
            self._once(
                self._client.describe_instances, ecs.DescribeInstancesRequest(region_id=self._region, dry_run=True)
            )
        except CloudError as error:
            if error.failure is Failure.DENIED:
                raise

    def launch(
        self, pool: PoolSettings, batch: Batch, candidate: Candidate, token: str, minimum: int, now: datetime
    ) -> tuple[str, ...]:
        """Buy a batch one way.

        Args:
            minimum: fewest instances that are worth having; all of the batch for a job that needs them all.
            token: client token; the same token never buys twice.
            now: the time, for the release time.

        Returns:
            Ids of the new instances, at least `minimum`.

        Raises:
            CloudError: nothing was bought.
        """
        amount = len(batch.nodes)
        spot = candidate.charge == "spot"
        limit = pool.spot_price_limit if spot else None
        threads = candidate.type.threads_per_core
        request = ecs.RunInstancesRequest(
            region_id=self._region,
            launch_template_id=pool.launch_template_id,
            instance_type=candidate.type.name,
            image_id=pool.image_id,
            amount=amount,
            min_amount=minimum if minimum < amount else None,
            client_token=token,
            instance_name=batch.name_pattern,
            host_name=batch.name_pattern,
            auto_release_time=release_time(now, pool.auto_release),
            instance_charge_type="PostPaid",
            spot_strategy=("SpotWithPriceLimit" if limit is not None else "SpotAsPriceGo") if spot else "NoSpot",
            spot_price_limit=float(limit) if limit is not None else None,
            spot_duration=pool.spot_duration if spot else None,
            deployment_set_id=pool.deployment_set_ids.get(candidate.zone.zone),
            cpu_options=ecs.RunInstancesRequestCpuOptions(threads_per_core=threads) if threads else None,
            network_interface=[
                ecs.RunInstancesRequestNetworkInterface(
                    instance_type="Primary",
                    v_switch_id=candidate.zone.vswitch_id,
                    security_group_id=pool.security_group_id,
                    network_interface_traffic_mode=pool.traffic_mode,
                )
            ],
            tag=[ecs.RunInstancesRequestTag(key=key, value=value) for key, value in sorted(pool.tags.items())],
        )
        body = self._call(self._client.run_instances, request)
        return tuple(body.instance_id_sets.instance_id_set)

    def quota_left(self, charge: str) -> int | None:
        """vCPUs that the account may still have in the region as `spot` or `payg`; None where that is not told.

        Raises:
            CloudError: the cloud refuses to say.
        """
        kind = "spot" if charge == "spot" else "postpaid"
        most, used = f"max-{kind}-instance-vcpu-count", f"used-{kind}-instance-vcpu-count"
        request = ecs.DescribeAccountAttributesRequest(region_id=self._region, attribute_name=[most, used])
        body = self._call(self._client.describe_account_attributes, request)
        found: dict[str, int] = {}
        for item in (body.account_attribute_items.account_attribute_item if body.account_attribute_items else []) or []:
            for value in (item.attribute_values.value_item if item.attribute_values else []) or []:
                if str(value.value).isdigit():
                    found.setdefault(item.attribute_name, int(value.value))
        return max(found[most] - found[used], 0) if most in found and used in found else None

    def console(self, instance_id: str) -> str:
        """What an instance has written to its console, "" for nothing; asked once, since it is read again later.

        Raises:
            CloudError: the cloud refuses to say.
        """
        request = ecs.GetInstanceConsoleOutputRequest(region_id=self._region, instance_id=instance_id)
        body = self._once(self._client.get_instance_console_output, request)
        return base64.b64decode(body.console_output or "").decode("utf-8", errors="replace")

    def extend(self, ids: Sequence[str], seconds: int, now: datetime) -> None:
        """Push the release time of instances to `seconds` from now."""
        for instance_id in ids:
            request = ecs.ModifyInstanceAutoReleaseTimeRequest(
                region_id=self._region, instance_id=instance_id, auto_release_time=release_time(now, seconds)
            )
            try:
                self._call(self._client.modify_instance_auto_release_time, request)
            except CloudError as error:
                if not is_gone(error.code):
                    raise

    def delete(self, ids: Iterable[str]) -> None:
        """Release instances, running ones too; ids that are gone already are no error."""
        waiting = list(ids)
        for start in range(0, len(waiting), _ID_LIMIT):
            part = waiting[start : start + _ID_LIMIT]
            try:
                self._delete(part)
            except CloudError as error:
                if not is_gone(error.code):
                    raise
                # One unknown id refuses the whole call: take them one by one.
                for instance_id in part:
                    try:
                        self._delete([instance_id])
                    except CloudError as single:
                        if not is_gone(single.code):
                            raise

    def _delete(self, ids: list[str]) -> None:
        request = ecs.DeleteInstancesRequest(region_id=self._region, instance_id=ids, force=True)
        self._call(self._client.delete_instances, request)

    def _call(self, method: Callable[[Any], Any], request: Any) -> Any:
        """One call; throttling and passing errors are retried, with the same request and so the same token."""
        patient = Retrying(
            retry=retry_if_exception(_passes),
            wait=wait_random_exponential(multiplier=0.5, max=20),
            stop=stop_after_delay(_PATIENCE_S),
            sleep=self._sleep,
            reraise=True,
        )
        for attempt in patient:
            with attempt:
                return self._once(method, request)
        raise AssertionError("unreachable: the last attempt raises")

    @staticmethod
    def _once(method: Callable[[Any], Any], request: Any) -> Any:
        try:
            return method(request).body
        except CredentialException as error:
            raise CloudError("NoCredentials", f"no access key and no role: {error}") from error
        except AlibabaCloudException as error:
            raise CloudError(str(error.code), str(error.message)) from error
        except Exception as error:  # the SDK lets errors of its HTTP client through, of whatever kind
            raise CloudError("NoAnswer", f"{type(error).__name__}: {error}") from error


def _passes(error: BaseException) -> bool:
    return isinstance(error, CloudError) and error.failure in (Failure.THROTTLED, Failure.PASSING)


def release_time(now: datetime, seconds: int) -> str:
    """An automatic release `seconds` from now as the API takes it: UTC, whole seconds, at least 30 minutes ahead."""
    ahead = max(seconds, SHORTEST_RELEASE_S + _MARGIN_S)
    return (now + timedelta(seconds=ahead)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(text: str | None) -> datetime | None:
    """A time of the API, with or without seconds (`2026-12-01T10:00Z`)."""
    if not text:
        return None
    form = "%Y-%m-%dT%H:%M:%SZ" if text.count(":") == 2 else "%Y-%m-%dT%H:%MZ"
    return datetime.strptime(text, form).replace(tzinfo=UTC)


def _instance(item: Any) -> Instance:
    tags = {tag.tag_key: tag.tag_value for tag in (item.tags.tag if item.tags else None) or []}
    vpc = item.vpc_attributes
    addresses = (vpc.private_ip_address.ip_address if vpc and vpc.private_ip_address else None) or []
    locks = (item.operation_locks.lock_reason if item.operation_locks else None) or []
    return Instance(
        id=item.instance_id,
        name=item.instance_name,
        pool=tags.get(TAG_POOL, ""),
        status=item.status,
        created=_time(item.creation_time) or datetime.fromtimestamp(0, UTC),
        release=_time(item.auto_release_time),
        address=addresses[0] if addresses else None,
        type=item.instance_type,
        zone=item.zone_id,
        charge="payg" if item.spot_strategy in (None, "", "NoSpot") else "spot",
        reclaimed=any(lock.lock_reason == "Recycling" for lock in locks),
    )
