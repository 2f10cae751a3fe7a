"""Trade the OIDC token of a CI job for keys of a RAM role that last an hour: `assume_role.py ENV_FILE`.

No key is stored anywhere: the runner proves by its token which repository, branch and environment it works for, and
the role's trust policy says which of those it accepts (docs/policies/README.md, Pipelines). The keys are appended to
ENV_FILE as NAME=value lines; on GitHub they are masked first.

Variables: ALIBABA_CLOUD_ROLE_ARN, ALIBABA_CLOUD_OIDC_PROVIDER_ARN; the token from ALIBABA_CLOUD_OIDC_TOKEN (GitLab:
`id_tokens`) or from GitHub's ACTIONS_ID_TOKEN_REQUEST_URL; ALIBABA_CLOUD_STS_ENDPOINT for another STS.

The call: https://www.alibabacloud.com/help/en/ram/developer-reference/api-sts-2015-04-01-assumerolewithoidc
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

AUDIENCE = "sts.aliyuncs.com"
_TIMEOUT_S = 30
_DURATION_S = 3600


def token(environment: Mapping[str, str]) -> str:
    """The OIDC token of the job."""
    if given := environment.get("ALIBABA_CLOUD_OIDC_TOKEN"):
        return given
    address = f"{environment['ACTIONS_ID_TOKEN_REQUEST_URL']}&audience={AUDIENCE}"
    headers = {"Authorization": f"Bearer {environment['ACTIONS_ID_TOKEN_REQUEST_TOKEN']}"}
    return str(_read(urllib.request.Request(address, headers=headers))["value"])  # noqa: S310  the runner's own address


def assume(environment: Mapping[str, str], oidc_token: str) -> Mapping[str, str]:
    """Keys of the role as environment variables that the provider and the SDKs know."""
    run = environment.get("GITHUB_RUN_ID") or environment.get("CI_PIPELINE_ID") or "local"
    form = {
        "Action": "AssumeRoleWithOIDC",
        "Version": "2015-04-01",
        "Format": "JSON",
        "Timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "RoleArn": environment["ALIBABA_CLOUD_ROLE_ARN"],
        "OIDCProviderArn": environment["ALIBABA_CLOUD_OIDC_PROVIDER_ARN"],
        "OIDCToken": oidc_token,
        "RoleSessionName": f"hpc-pipeline-{run}",
        "DurationSeconds": str(_DURATION_S),
    }
    endpoint = environment.get("ALIBABA_CLOUD_STS_ENDPOINT", "https://sts.aliyuncs.com")
    # The body is a form, so that the token is in no address and no log of one.
    request = urllib.request.Request(endpoint, data=urllib.parse.urlencode(form).encode(), method="POST")  # noqa: S310
    keys = _read(request)["Credentials"]
    names = {
        "AccessKeyId": ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALICLOUD_ACCESS_KEY"),
        "AccessKeySecret": ("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALICLOUD_SECRET_KEY"),
        "SecurityToken": ("ALIBABA_CLOUD_SECURITY_TOKEN", "ALICLOUD_SECURITY_TOKEN"),
    }
    return {name: str(keys[key]) for key, wanted in names.items() for name in wanted}


def _read(request: urllib.request.Request) -> Any:
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310  runner's or STS's address
        return json.loads(answer.read())


def main() -> int:
    """Exit code 0: the keys are in the file; 2: there are none."""
    try:
        keys = assume(os.environ, token(os.environ))
    except KeyError as error:
        sys.stderr.write(f"the role cannot be assumed: {error.args[0]} is not there\n")
        return 2
    except urllib.error.HTTPError as error:
        # The body says which condition of the trust policy was not met; it holds no secret.
        sys.stderr.write(f"the role cannot be assumed: {error} {error.read(2000).decode(errors='replace')}\n")
        return 2
    except (urllib.error.URLError, ValueError) as error:
        sys.stderr.write(f"the role cannot be assumed: {error}\n")
        return 2
    if os.environ.get("GITHUB_ACTIONS"):
        sys.stdout.write("".join(f"::add-mask::{value}\n" for value in sorted(set(keys.values()))))
    file = Path(sys.argv[1])
    file.touch(mode=0o600)
    with file.open("a", encoding="utf-8") as out:
        out.writelines(f"{name}={value}\n" for name, value in keys.items())
    return 0


if __name__ == "__main__":
    sys.exit(main())
