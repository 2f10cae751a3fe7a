"""Reports as JUnit XML: a test case for each rule, so that what passed is there, too."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hpc.preview.model import Issue, Report
from policies.registry import GROUPS

#: What XML 1.0 does not allow in a document.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(report: Report) -> str:
    """A report as a JUnit document."""
    root = ET.Element("testsuites", name=f"hpc preview {report.stack}")
    ran = report.verdict.word != "could not run" and bool(report.environment or report.seconds)
    named = {rule.name for rules in GROUPS.values() for rule in rules}
    for group, rules in GROUPS.items():
        _suite(root, group, [rule.name for rule in rules], report, skipped=not ran)
    others = dict.fromkeys(issue.rule for issue in report.issues if issue.rule not in named)
    _suite(root, "Stack file and run", list(others) or ["stack file"], report, skipped=False)
    for key in ("tests", "failures", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    root.set("time", f"{report.seconds:.2f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, name: str, rules: list[str], report: Report, *, skipped: bool) -> None:
    suite = ET.SubElement(root, "testsuite", name=name)
    failures = skips = 0
    for rule in rules:
        case = ET.SubElement(suite, "testcase", name=rule, classname=f"{report.stack}.{name.replace(' ', '-')}")
        issues = [issue for issue in report.issues if issue.rule == rule]
        refusing = [issue for issue in issues if issue.refuses or issue.severity == "error"]
        advising = [issue for issue in issues if issue not in refusing]
        if refusing:
            failures += 1
            failure = ET.SubElement(case, "failure", type=refusing[0].code, message=_clean(refusing[0].message))
            failure.text = "\n".join(_text(issue) for issue in refusing)
        elif skipped and not advising:
            skips += 1
            ET.SubElement(case, "skipped", message="the preview could not be run")
        if advising:
            ET.SubElement(case, "system-out").text = "\n".join(_text(issue) for issue in advising)
    suite.set("tests", str(len(rules)))
    suite.set("failures", str(failures))
    suite.set("skipped", str(skips))


def _text(issue: Issue) -> str:
    where = f" [{issue.resource}]" if issue.resource else ""
    return _clean(f"{issue.code}{where} {issue.message}\n    fix: {issue.fix}")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("�", text)
