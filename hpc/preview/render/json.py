"""Reports as JSON with stable keys; money as strings, so that nothing is rounded."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hpc.cost.render.json import amounts_as_json
from hpc.preview.model import Price, Report

#: Version of the layout; goes up when a key changes its meaning or goes away.
LAYOUT = 1


def as_json(report: Report) -> dict[str, Any]:
    """A report as JSON-ready values."""
    return {
        "layout": LAYOUT,
        "stack": report.stack,
        "stack_file": report.stack_file,
        "verdict": report.verdict.word,
        "exit_code": int(report.verdict),
        "reasons": list(report.reasons),
        "issues": [asdict(issue) for issue in report.issues],
        "waived": [asdict(issue) for issue in report.waived],
        "changes": [_change(asdict(change)) for change in report.changes],
        "drift": None if report.drift is None else [_change(asdict(change)) for change in report.drift],
        "price": _price(report.price) if report.price else None,
        "environment": report.environment,
        "notes": list(report.notes),
        "seconds": round(report.seconds, 2),
    }


def as_json_text(report: Report) -> str:
    """A report as a JSON document."""
    return json.dumps(as_json(report), indent=2, ensure_ascii=False) + "\n"


def _change(change: dict[str, Any]) -> dict[str, Any]:
    return {**change, "because": list(change["because"])}


def _price(price: Price) -> dict[str, Any]:
    return {
        "base": price.base or None,
        "complete": price.complete,
        "rows": [
            {
                "title": row.title,
                "before": amounts_as_json(row.before) if row.before else None,
                "after": amounts_as_json(row.after) if row.after else None,
                "delta": amounts_as_json(row.delta) if row.delta else None,
            }
            for row in price.rows
        ],
    }
