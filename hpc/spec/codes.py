"""The codes of findings and errors: what each means, how it is mended, whether it may be switched off.

Each folder of the program ("room") keeps the codes it raises in a file `codes.toml` of its own, so that a new code
needs no change here. An entry:

    [HPC207]
    title = "vSwitch too small for the pools' maxima"
    severity = "error"              # error | warning | info; errors that are raised have "error"
    suppressible = true             # `checks: {HPC207: warning}` or `off` is allowed; false unless given
    explanation = "..."             # what is wrong and what would happen
    fix = "..."                     # what to do
    needs = ["pools.max", "zones"]  # optional: parts of the stack file it relies on beside its own path; where one of
                                    # them could not be read, the finding is left out as a mere consequence

A code is raised by the room that declares it and the folders in it; codes of `hpc/spec` may be raised anywhere.
`python -m hpc.spec.codes` prints the page of codes (docs/codes.md); a test holds that page, and every code that the
source mentions, to the registry.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hpc.errors import CannotRunError
from hpc.findings import Finding, Severity
from hpc.paths import PROJECT_ROOT

#: What the hundreds mean.
RANGES = {
    0: "Reading files and commands",
    1: "Cluster, names, regions, scheduler, users",
    2: "Network",
    3: "Pools and instance types",
    4: "Storage",
    5: "Management and login nodes",
    6: "Money and quota",
    7: "Engine and resources",
    8: "Slurm's files, bootstrap, local cloud",
    9: "Run time",
}

_ROOMS = ("hpc", "components", "policies", "localcloud")


@dataclass(frozen=True, slots=True)
class Code:
    """One code.

    Attributes:
        code: `HPC207`.
        title: what is wrong, a few words.
        severity: of its findings.
        suppressible: whether `checks` may downgrade it or switch it off.
        explanation: what is wrong and what would happen.
        fix: what to do.
        room: folder that raises it, for instance `hpc/spec`.
        needs: parts of the stack file that its findings rely on, without positions in lists.
    """

    code: str
    title: str
    severity: Severity
    suppressible: bool
    explanation: str
    fix: str
    room: str
    needs: tuple[str, ...] = ()


def code_files() -> tuple[Path, ...]:
    """The `codes.toml` files of all rooms, in the order of their paths."""
    return tuple(
        sorted(
            path
            for room in _ROOMS
            for depth in ("", "*/", "*/*/")
            for path in (PROJECT_ROOT / room).glob(f"{depth}codes.toml")
        )
    )


def read_codes(path: Path) -> tuple[Code, ...]:
    """The codes of one file.

    Raises:
        CannotRunError: HPC015, the file is not a table of codes.
    """
    room = path.parent.relative_to(PROJECT_ROOT).as_posix() if path.is_relative_to(PROJECT_ROOT) else path.parent.name
    try:
        return tuple(
            _code(code, entry, room) for code, entry in tomllib.loads(path.read_text(encoding="utf-8")).items()
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CannotRunError(
            f"{path} is not a table of codes: {error}", code="HPC015", fix="see the head of hpc/spec/codes.py"
        ) from error


def _code(code: str, entry: dict[str, Any], room: str) -> Code:
    return Code(
        code=code,
        title=str(entry["title"]),
        severity=Severity(entry["severity"]),
        suppressible=bool(entry.get("suppressible", False)),
        explanation=str(entry["explanation"]),
        fix=str(entry["fix"]),
        room=room,
        needs=tuple(entry.get("needs", ())),
    )


@cache
def registry() -> dict[str, Code]:
    """All codes by name, in order. Of a code that two rooms claim, the first counts (a test forbids it).

    Raises:
        CannotRunError: HPC015, a file is malformed.
    """
    codes: dict[str, Code] = {}
    for path in code_files():
        for code in read_codes(path):
            codes.setdefault(code.code, code)
    return dict(sorted(codes.items()))


@cache
def _own() -> dict[str, Code]:
    return {code.code: code for code in read_codes(Path(__file__).with_name("codes.toml"))}


def finding(code: str, path: str, value: Any, message: str, fix: str | None = None) -> Finding:
    """A finding of a code of this room; severity and, unless given, the fix are the registry's."""
    known = _own()[code]
    return Finding(code, known.severity, path, value, message, fix or known.fix)


def needs(code: str) -> tuple[str, ...]:
    """Parts of the stack file that findings of a code rely on, empty for codes of other rooms."""
    known = _own().get(code)
    return known.needs if known else ()


def page(codes: Iterable[Code]) -> str:
    """The page of codes, Markdown."""
    lines = [
        "# Codes",
        "",
        "Every finding and every error has a code. *error* refuses the stack, *warning* does not and also stands for",
        '"could not be verified". Where a code may be switched off, `checks: {HPC207: warning}` makes an error a',
        'warning and `checks: {HPC207: "off"}` silences it. This page is generated (`make generate`).',
    ]
    hundred = None
    for code in codes:
        if (number := int(code.code[3:]) // 100) != hundred:
            hundred = number
            lines += ["", f"## {number}xx {RANGES.get(number, '')}".rstrip()]
        off = ", may be switched off" if code.suppressible else ""
        lines += ["", f"### {code.code} {code.title}", "", f"*{code.severity}{off}* ({code.room})", ""]
        lines += [code.explanation, "", f"**Fix:** {code.fix}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(registry().values()))
