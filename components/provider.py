"""Which cloud the program talks to: the account's own, or a local one. No other module knows the difference."""

from __future__ import annotations

import os
import re

import pulumi
import pulumi_alicloud as alicloud

from hpc.errors import RefusedError

#: `host:port` of a local cloud; unset for the real one.
ENDPOINT_VARIABLE = "HPC_LOCAL_ENDPOINT"
KEY_ID_VARIABLE = "ALIBABA_CLOUD_ACCESS_KEY_ID"
KEY_SECRET_VARIABLE = "ALIBABA_CLOUD_ACCESS_KEY_SECRET"  # noqa: S105  (name of a variable)

#: A name of the stack that must never reach a real account by mistake.
LOCAL_STACK = "local"

#: Only so that the provider asks nobody for it; the local cloud has one account.
_ACCOUNT_ID = "1000000000000001"


def local_endpoint() -> str | None:
    """`host:port` of the local cloud that the environment names, or None.

    Raises:
        RefusedError: HPC701, the variable is not of that form.
    """
    endpoint = os.environ.get(ENDPOINT_VARIABLE) or None
    if endpoint and not re.fullmatch(r"[A-Za-z0-9.-]+:\d{1,5}", endpoint):
        raise RefusedError(
            f"{ENDPOINT_VARIABLE} is {endpoint!r}, not host:port", code="HPC701", fix="set it to, say, 127.0.0.1:9099"
        )
    return endpoint


def cloud_provider(name: str, region: str, stack: str) -> alicloud.Provider | None:
    """The explicit provider of a local cloud, or None where the default provider is right.

    The keys come from the environment and are secret inputs, so that state holds them encrypted only.

    Args:
        name: logical name.
        region: region id.
        stack: name of the stack.

    Raises:
        RefusedError: HPC702, the stack `local` without a local cloud; HPC703, a local cloud without keys.
    """
    endpoint = local_endpoint()
    if endpoint is None:
        if stack == LOCAL_STACK:
            raise RefusedError(
                f"the stack {LOCAL_STACK} is for the local cloud, and {ENDPOINT_VARIABLE} names none",
                code="HPC702",
                fix="run `hpc up local`, or `hpc local start` and set the variables that it prints",
            )
        return None
    key_id, key_secret = os.environ.get(KEY_ID_VARIABLE), os.environ.get(KEY_SECRET_VARIABLE)
    if not (key_id and key_secret):
        raise RefusedError(
            f"{ENDPOINT_VARIABLE} is set, but {KEY_ID_VARIABLE} or {KEY_SECRET_VARIABLE} is not",
            code="HPC703",
            fix="set the variables that `hpc local status` prints",
        )
    return alicloud.Provider(
        name,
        region=region,
        access_key=pulumi.Output.secret(key_id),
        secret_key=pulumi.Output.secret(key_secret),
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
