"""Reports as text: for a terminal, for programs, for code hosting sites and test views, for a comment."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from hpc.preview.model import Report


class Format(StrEnum):
    """Forms of a report."""

    TERMINAL = "terminal"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    MARKDOWN = "markdown"


#: Names of the files that `write_reports` makes.
FILES = {
    Format.JSON: "preview.json",
    Format.SARIF: "preview.sarif",
    Format.JUNIT: "preview.junit.xml",
    Format.MARKDOWN: "preview.md",
}


def render(report: Report, form: Format) -> str:
    """A report in one of its forms, without colours."""
    match form:
        case Format.JSON:
            from hpc.preview.render.json import as_json_text

            return as_json_text(report)
        case Format.SARIF:
            from hpc.preview.render.sarif import as_sarif

            return as_sarif(report)
        case Format.JUNIT:
            from hpc.preview.render.junit import as_junit

            return as_junit(report)
        case Format.MARKDOWN:
            from hpc.preview.render.markdown import as_markdown

            return as_markdown(report)
        case Format.TERMINAL:
            from hpc.preview.render.terminal import as_plain_text

            return as_plain_text(report)


def write_reports(report: Report, folder: Path) -> dict[Format, Path]:
    """Write a report in all forms that go into files; the folder is made where it is missing.

    Returns:
        The files by form.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {form: folder / name for form, name in FILES.items()}
    for form, file in files.items():
        file.write_text(render(report, form), encoding="utf-8")
    return files
