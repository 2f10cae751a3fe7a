"""Which cloud the program talks to: the account's own, or a local one. No other module knows the difference."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_alicloud as alicloud

from hpc.errors import RefusedError

#: `host:port` of a local cloud; unset for the real one.
ENDPOINT_VARIABLE = "HPC_LOCAL_ENDPOINT"
KEY_ID_VARIABLE = "ALIBABA_CLOUD_ACCESS_KEY_ID"
KEY_SECRET_VARIABLE = "ALIBABA_CLOUD_ACCESS_KEY_SECRET"  # noqa: S105  (name of a variable)
#: `yes` where the instances of the local cloud are real hosts, which can be set up over SSH.
HOSTS_VARIABLE = "HPC_LOCAL_HOSTS"

#: A name of the stack that must never reach a real account by mistake.
LOCAL_STACK = "local"

#: Only so that the provider asks nobody for it; the local cloud has one account.
_ACCOUNT_ID = "1000000000000001"


@dataclass(frozen=True, slots=True)
class LocalCloud:
    """A local cloud to talk to.

    Attributes:
        endpoint: `host:port` of its API.
        key_id, key_secret: its access key.
        hosts: its instances are real hosts; else there is nothing behind the API to be set up.
    """

    endpoint: str
    key_id: str
    key_secret: str = field(repr=False)
    hosts: bool = False


def local_cloud(stack: str, environment: Mapping[str, str]) -> LocalCloud | None:
    """The local cloud that the environment names, or None where the account's own cloud is meant.

    Args:
        stack: name of the stack.
        environment: environment variables.

    Raises:
        RefusedError: HPC701, the endpoint is not host:port; HPC702, the stack `local` without a local cloud;
            HPC703, a local cloud without keys.
    """
    endpoint = environment.get(ENDPOINT_VARIABLE)
    if not endpoint:
        if stack == LOCAL_STACK:
            raise RefusedError(
                f"the stack {LOCAL_STACK} is for the local cloud, and {ENDPOINT_VARIABLE} names none",
                code="HPC702",
                fix="run `hpc up local`, or `hpc local start` and set the variables that it prints",
            )
        return None
    if not re.fullmatch(r"[A-Za-z0-9.-]+:\d{1,5}", endpoint):
        raise RefusedError(
            f"{ENDPOINT_VARIABLE} is {endpoint!r}, not host:port", code="HPC701", fix="set it to, say, 127.0.0.1:9099"
        )
    key_id, key_secret = environment.get(KEY_ID_VARIABLE), environment.get(KEY_SECRET_VARIABLE)
    if not (key_id and key_secret):
        raise RefusedError(
            f"{ENDPOINT_VARIABLE} is set, but {KEY_ID_VARIABLE} or {KEY_SECRET_VARIABLE} is not",
            code="HPC703",
            fix="set the variables that `hpc local status` prints",
        )
    return LocalCloud(endpoint, key_id, key_secret, hosts=environment.get(HOSTS_VARIABLE) == "yes")


def local_provider(name: str, region: str, cloud: LocalCloud) -> alicloud.Provider:
    """The explicit provider of a local cloud. The keys are secret inputs: state holds them encrypted only.

    Args:
        name: logical name.
        region: region id.
        cloud: where it is.
    """
    endpoint = cloud.endpoint
    return alicloud.Provider(
        name,
        region=region,
        access_key=pulumi.Output.secret(cloud.key_id),
        secret_key=pulumi.Output.secret(cloud.key_secret),
        account_id=_ACCOUNT_ID,
        # Otherwise the provider asks the billing API what kind of account it has.
        account_type="Domestic",
        protocol="HTTP",
        skip_region_validation=True,
        endpoints=[
            alicloud.ProviderEndpointArgs(
                ecs=endpoint,
                vpc=endpoint,
                nas=endpoint,
                ram=endpoint,
                sts=endpoint,
                location=endpoint,
                bssopenapi=endpoint,
                tag=endpoint,
            )
        ],
    )
