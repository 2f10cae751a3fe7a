"""Single calls to any service of the cloud, for what the engine's provider cannot be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpc.elastic.ecs import Connection
from hpc.errors import CannotRunError

_VERSIONS = {"ecs": "2014-05-26", "vpc": "2016-04-28", "nas": "2017-06-26", "ram": "2015-05-01"}


class Api:
    """The API of one region.

    Args:
        connection: how it is reached; a local cloud serves all services at one endpoint.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def call(self, product: str, action: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Make a call that reads; what does not exist is an empty answer.

        Args:
            product: `ecs`, `vpc`, `nas` or `ram`.
            action: name of the API action.
            parameters: as the RPC protocol writes them.

        Raises:
            CannotRunError: HPC725, the cloud refuses or does not answer.
        """
        from alibabacloud_credentials.exceptions import CredentialException
        from alibabacloud_tea_openapi.exceptions import AlibabaCloudException
        from alibabacloud_tea_openapi.models import OpenApiRequest, Params
        from darabonba.exceptions import DaraException, UnretryableException
        from darabonba.runtime import RuntimeOptions

        region, local = self._connection.region, self._connection.endpoint
        own = f"{product}.aliyuncs.com" if product == "ram" else f"{product}.{region}.aliyuncs.com"
        asked = Params(
            action=action,
            version=_VERSIONS[product],
            protocol=self._connection.protocol.upper(),
            pathname="/",
            method="POST",
            auth_type="AK",
            style="RPC",
            req_body_type="formData",
            body_type="json",
        )
        query = {**({} if product == "ram" else {"RegionId": region}), **parameters}
        try:
            client = Connection(region, local or own, self._connection.protocol).client()
            answer = client.call_api(asked, OpenApiRequest(query=query), RuntimeOptions(autoretry=True, max_attempts=3))
        except (AlibabaCloudException, DaraException, UnretryableException, CredentialException, OSError) as error:
            code = str(getattr(error, "code", ""))
            if "NotExist" in code or "NotFound" in code:
                return {}
            raise CannotRunError(
                f"the cloud cannot be asked what there is ({action}): {code or type(error).__name__}: {error}",
                code="HPC725",
                fix="see that the credentials work (`hpc doctor`), then run `hpc repair` again",
            ) from error
        return dict(answer["body"])
