"""The pages of the rules: `python -m policies.docs` writes docs/policies, one page a rule and a list of all.

docs/policies/README.md is written by hand but for the list between its two marks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hpc.paths import PROJECT_ROOT
from policies.model import Rule
from policies.registry import GROUPS, RULES
from policies.texts import PAGES, codes

ENVIRONMENTS = ("dev", "staging", "prod", "local")

_FIRST, _LAST = "<!-- rules: generated -->", "<!-- end of rules -->"


def pages() -> dict[str, str]:
    """All pages by file name, the list in README.md included."""
    found = {f"{rule.name}.md": page(rule) for rule in RULES}
    readme = (PROJECT_ROOT / PAGES / "README.md").read_text(encoding="utf-8")
    before, _, rest = readme.partition(_FIRST)
    _, _, after = rest.partition(_LAST)
    found["README.md"] = f"{before}{_FIRST}\n{table()}{_LAST}{after}"
    return found


def table() -> str:
    """The list of rules, by group."""
    lines = []
    for group, rules in GROUPS.items():
        lines += ["", f"**{group}**", "", "| rule | refuses | severity |", "|---|---|---|"]
        lines += [
            f"| [{rule.name}]({rule.name}.md) ({rule.code}) | {codes()[rule.code].title} | {rule.severity} |"
            for rule in rules
        ]
    return "\n".join([*lines, ""]) + "\n"


def page(rule: Rule) -> str:
    """The page of a rule."""
    code = codes()[rule.code]
    about = "the whole stack" if rule.stack_check else "each resource by itself"
    out = [
        f"# {rule.name}",
        "",
        f"**{code.code} {code.title}**. Severity: {rule.severity}. It looks at {about}.",
        "",
        code.explanation,
        "",
        f"**Fix:** {code.fix}.",
        "",
        "It judges:",
        "",
        *(f"- `{kind}`" for kind in rule.types),
        "",
    ]
    if rule.settings:
        out += ["## Settings", "", "| setting | default | meaning |", "|---|---|---|"]
        for name, setting in rule.settings.items():
            default = "none" if setting.default is None else f"`{json.dumps(setting.default)}`"
            out.append(f"| `{name}` | {default} | {setting.meaning} |")
        out.append("")
    out += ["## Environments", "", "| environment | level | settings |", "|---|---|---|", *_environments(rule), ""]
    if rule.remedy:
        out += [
            "At the level `remediate` the pack mends it before the resource is made, where that is safe; what it",
            "cannot mend is refused as at `mandatory`.",
            "",
        ]
    out += [
        "A value that is known only after deployment is refused as `could not be verified`, never passed.",
        "[How to waive a rule](README.md#how-to-waive-a-rule).",
        "",
        "*This page is generated (`python -m policies.docs`).*",
    ]
    return "\n".join(out) + "\n"


def _environments(rule: Rule) -> Iterator[str]:
    for name in ENVIRONMENTS:
        text = (PROJECT_ROOT / "policies" / "config" / f"{name}.json").read_text(encoding="utf-8")
        given: str | Mapping[str, Any] = json.loads(text).get(rule.name, {})
        entry = {"enforcementLevel": given} if isinstance(given, str) else given
        settings = ", ".join(f"`{key}: {json.dumps(value)}`" for key, value in entry.items() if key in rule.settings)
        yield f"| {name} | {entry.get('enforcementLevel', rule.level.value)} | {settings or 'defaults'} |"


def main() -> int:
    """Write the pages; pages of rules that are gone are removed."""
    folder = Path(PROJECT_ROOT / PAGES)
    made = pages()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    for file in folder.glob("hpc-*.md"):
        if file.name not in made:
            file.unlink()
    sys.stdout.write(f"{len(made)} pages in {PAGES}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
