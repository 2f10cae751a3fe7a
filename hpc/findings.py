"""What a check says about a stack file: findings with a code, a path, a value and a fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from hpc.errors import RefusedError


class Severity(StrEnum):
    """How much a finding matters: an error refuses the stack, a warning does not."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a check has to say.

    Attributes:
        code: stable code, e.g. `HPC101` (all of them: docs/codes.md).
        severity: `error` refuses the stack; `warning` also stands for "could not be verified".
        path: where in the stack file, e.g. `pools[0].instance_types[1]`; empty for the whole cluster.
        value: the value found there, as the user wrote it, or None where there is none.
        message: which rule is broken, one sentence.
        fix: how to mend it, one sentence.
    """

    code: str
    severity: Severity
    path: str
    value: Any
    message: str
    fix: str

    def as_dict(self) -> dict[str, Any]:
        """The finding as plain JSON-ready values; an over-long value is cut to 200 characters."""
        out = asdict(self)
        out["severity"] = str(self.severity)
        if not isinstance(self.value, (int, float, bool, type(None))):
            text = str(self.value)
            out["value"] = text if len(text) <= 200 else text[:197] + "..."
        return out


class FindingsError(RefusedError):
    """At least one finding is an error. All findings, warnings too, are in `findings`."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        errors = [finding for finding in self.findings if finding.severity is Severity.ERROR]
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"{first.path or 'cluster'}: {first.message}{more}", code=first.code, fix=first.fix)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether any of the findings refuses the stack."""
    return any(finding.severity is Severity.ERROR for finding in findings)
