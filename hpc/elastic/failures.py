"""What an error of the cloud means for buying: sold out is not quota is not throttling is not a wrong parameter.

Codes: https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-runinstances (error codes).
"""

from __future__ import annotations

from enum import StrEnum


class Failure(StrEnum):
    """Classes of failed launches, each with its own answer."""

    #: Try the next type, zone or way of paying; come back after a cool-down.
    STOCK = "no stock"
    #: Stop buying for a while: another try changes nothing.
    QUOTA = "quota"
    #: A cap of the stack file: a cheaper way to buy may still fit, nothing else does.
    BUDGET = "budget"
    #: The vSwitch is full: try the next zone.
    ADDRESSES = "no free address"
    #: Wait and try the same again.
    THROTTLED = "throttled"
    #: Try the same again with the same token.
    PASSING = "passing error"
    #: Who asks may not, or cannot pay: nothing else is tried, and the same again later, since a person may have helped.
    DENIED = "not allowed"
    #: The call is wrong: nothing helps but a person, and nothing is bought until that person says so.
    REFUSED = "refused"


_STOCK = (
    "OperationDenied.NoStock",
    "Zone.NotOnSale",
    "InvalidResourceType.NotSupported",
    "InstanceType.Offline",
    "OperationDenied.PaygNotAvailable",
    "InvalidInstanceType.NotSupported",
    "InvalidInstanceType.ZoneNotSupported",
    "SpotStock",
    # Types, regions or times that do not sell spot with a protected hour: another type may.
    "OperationDenied.FlavorNotSupported",
    "OperationDenied.RegionIdNotSupported",
    "OperationDenied.TimestampNotSupported",
)
_DENIED = (
    "NoCredentials",
    "Forbidden",
    "InvalidUser.PassRoleForbidden",
    "NoPermission",
    "InvalidAccessKeyId",
    "InactiveAccessKey",
    "InvalidSecurityToken",
    "MissingSecurityToken",
    "SignatureDoesNotMatch",
    "IncompleteSignature",
    "InvalidTimeStamp",
    "InvalidAccountStatus",
    "PaymentMethodNotFound",
)
_PASSING = (
    "InternalError",
    "ServiceUnavailable",
    "OperationConflict",
    "IncorrectVSwitchStatus",
    "LastTokenProcessing",
    # An instance in its first moments cannot be released yet.
    "IncorrectInstanceStatus.Initializing",
)


def classify(code: str) -> Failure:
    """The class of an API error code; a code that is not known is refused, so that nobody buys in circles."""
    if code.startswith("Throttling"):
        return Failure.THROTTLED
    if code in ("QuotaExceeded.PrivateIpAddress", "InvalidVSwitchId.IpNotEnough"):
        return Failure.ADDRESSES
    if code.startswith(("QuotaExceed", "OperationDenied.Quota")):
        return Failure.QUOTA
    if code.startswith(_STOCK):
        return Failure.STOCK
    if code.startswith(_PASSING) or code == "NoAnswer":
        return Failure.PASSING
    if code.startswith(_DENIED):
        return Failure.DENIED
    return Failure.REFUSED


def is_gone(code: str) -> bool:
    """Whether the code says that the instance is not there (any more)."""
    return "NotFound" in code or code == "NoSuchResource"
