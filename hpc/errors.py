"""The errors a user can meet. Each has a stable code, a message and a way to fix it; none needs a traceback."""

from __future__ import annotations


class HpcError(Exception):
    """A failure that is explained to the user instead of being shown as a traceback.

    Args:
        message: what is wrong, one sentence.
        code: stable code (`HPC101`); the page of codes in the documentation explains each.
        fix: what the user can do about it, one sentence.
    """

    #: Exit code of the `hpc` command: 1 when the input was refused, 2 when something could not be run.
    exit_code = 2

    def __init__(self, message: str, *, code: str, fix: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.code}: {self.message} (fix: {self.fix})"


class RefusedError(HpcError):
    """The input is wrong or breaks a rule (exit code 1)."""

    exit_code = 1


class CannotRunError(HpcError):
    """Something that is needed is missing or does not answer (exit code 2)."""

    exit_code = 2
