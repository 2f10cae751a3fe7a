"""Errors as the real cloud answers them: a stable code, a message, an HTTP status."""

from __future__ import annotations


class ApiError(Exception):
    """An error document of the API.

    Args:
        status: HTTP status code.
        code: error code such as `InvalidVSwitchId.NotFound`.
        message: text for people.
        extra: further members of the error document (`AccessDeniedDetail`).
    """

    def __init__(self, status: int, code: str, message: str, extra: dict[str, object] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.extra = extra or {}


def missing(name: str) -> ApiError:
    """A mandatory parameter was not given."""
    return ApiError(
        400,
        f"MissingParameter.{name}",
        f'The input parameter "{name}" that is mandatory for processing this request is not supplied.',
    )


def invalid(name: str, why: str = "") -> ApiError:
    """A parameter has a value that is not allowed."""
    return ApiError(400, f"InvalidParameter.{name}", f"The specified parameter {name} is not valid. {why}".rstrip())


def not_found(code: str, what: str) -> ApiError:
    """The resource that a request names does not exist; `code` is the documented one for the resource."""
    return ApiError(404, code, f"The specified {what} does not exist.")


def dependency(code: str, message: str) -> ApiError:
    """The resource is still used by another one."""
    return ApiError(400, code, message)


def quota(code: str, message: str) -> ApiError:
    """The account may not have more of this."""
    return ApiError(403, code, message)
