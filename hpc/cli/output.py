"""How commands speak: results on standard output, everything about them on standard error, JSON when asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any

from rich.console import Console
from rich.markup import escape

from hpc.errors import HpcError
from hpc.findings import Finding, FindingsError, Severity

_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


@cache
def out() -> Console:
    """Console for results. Colours go away with NO_COLOR or when the output is not a terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 140)


@cache
def err() -> Console:
    """Console for progress, findings and errors."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return str(value)


def print_json(value: Any) -> None:
    """Write one JSON document to standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=_plain) + "\n")


def print_findings(findings: Iterable[Finding]) -> None:
    """Write findings for a person: one block each, errors first, then a line that counts them."""
    order = list(Severity)
    counts = dict.fromkeys(order, 0)
    for finding in sorted(findings, key=lambda f: (order.index(f.severity), f.path, f.code)):
        counts[finding.severity] += 1
        style = _STYLE[finding.severity]
        where = escape(finding.path or "cluster")
        value = "" if finding.value is None else f" = {escape(str(finding.as_dict()['value']))}"
        err().print(f"[{style}]{finding.severity}[/] {finding.code} [bold]{where}[/]{value}")
        err().print(f"    {escape(finding.message)}")
        err().print(f"    [dim]fix:[/] {escape(finding.fix)}")
    said = [f"{count} {severity}{'s' if count != 1 else ''}" for severity, count in counts.items() if count]
    if said:
        err().print(", ".join(said))


def print_error(error: HpcError, *, as_json: bool) -> None:
    """Write an error that ends a command."""
    if as_json:
        body: dict[str, Any] = {"error": {"code": error.code, "message": error.message, "fix": error.fix}}
        if isinstance(error, FindingsError):
            body["findings"] = [finding.as_dict() for finding in error.findings]
        print_json(body)
    elif isinstance(error, FindingsError):
        print_findings(error.findings)
    else:
        err().print(f"[bold red]error[/] {error.code} {escape(error.message)}")
        err().print(f"    [dim]fix:[/] {escape(error.fix)}")
