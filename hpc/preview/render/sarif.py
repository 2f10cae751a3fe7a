"""Reports as SARIF 2.1.0, for code-scanning views: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from hpc import __version__
from hpc.paths import PROJECT_ROOT
from hpc.preview.model import Issue, Report
from hpc.preview.places import line_of
from hpc.spec.codes import registry

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

#: Scores that code-scanning views sort by (`security-severity`).
_SCORE = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "3.0"}


def as_sarif(report: Report) -> str:
    """A report as a SARIF document; what is waived is there, suppressed."""
    issues = [*report.issues, *report.waived]
    rules = list(dict.fromkeys(issue.code for issue in issues))
    text = _stack_text(report)
    results = [_result(issue, rules, report, text) for issue in report.issues]
    for issue in report.waived:
        suppressed = _result(issue, rules, report, text)
        suppressed["suppressions"] = [{"kind": "external", "justification": issue.message}]
        results.append(suppressed)
    by_code = {issue.code: issue for issue in reversed(issues)}
    run = {
        "tool": {
            "driver": {
                "name": "hpc preview",
                "semanticVersion": __version__,
                "rules": [_rule(code, by_code[code]) for code in rules],
            }
        },
        "automationDetails": {"id": f"hpc-preview/{report.stack}"},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": report.verdict.word != "could not run",
                "exitCode": int(report.verdict),
            }
        ],
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _stack_text(report: Report) -> str:
    path = PROJECT_ROOT / report.stack_file if report.stack_file else None
    return path.read_text(encoding="utf-8") if path and path.is_file() else ""


def _rule(code: str, issue: Issue) -> dict[str, Any]:
    known = registry().get(code)
    rule: dict[str, Any] = {
        "id": code,
        "name": issue.rule,
        "shortDescription": {"text": issue.title},
        "fullDescription": {"text": known.explanation if known else issue.title},
        "help": {"text": f"Fix: {issue.fix}"},
        "properties": {"tags": ["hpc"]},
    }
    if score := _SCORE.get(issue.severity):
        rule["properties"]["security-severity"] = score
    return rule


def _result(issue: Issue, rules: list[str], report: Report, text: str) -> dict[str, Any]:
    uri = Path(report.stack_file).as_posix() if report.stack_file else "Pulumi.yaml"
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": line_of(text, issue.path)},
        }
    }
    if issue.resource:
        location["logicalLocations"] = [
            {"name": issue.resource, "fullyQualifiedName": issue.urn, "kind": "resource"},
        ]
    identity = "\n".join((report.stack, issue.code, issue.rule, issue.urn, issue.path))
    return {
        "ruleId": issue.code,
        "ruleIndex": rules.index(issue.code),
        "level": "error" if issue.refuses or issue.severity == "error" else "warning",
        "message": {"text": f"{issue.message}. Fix: {issue.fix}"},
        "locations": [location],
        # The same issue keeps its number while lines move.
        "partialFingerprints": {"hpcIssue/v1": hashlib.sha256(identity.encode()).hexdigest()[:32]},
    }
