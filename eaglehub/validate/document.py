"""`docs/rules.md`, made of the catalogue: `python -m eaglehub.validate.document > docs/rules.md`."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from eaglehub.validate.rules import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.validate.rule import Rule


def rules_document() -> str:
    """The whole document in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# What `eaglehub validate` checks"
    yield ""
    yield f"{len(BUILT_IN)} rules, each with a code that never changes its meaning. Made from the catalogue in"
    yield "`eaglehub/validate/`; `eaglehub explain CODE` shows one of them."
    for family, rules in groupby(BUILT_IN.values(), key=lambda rule: rule.family):
        yield from ("", f"## {family}")
        for rule in rules:
            yield from _section(rule)


def _section(rule: Rule) -> Iterator[str]:
    # An anchor that stays when the title changes.
    yield from ("", f'### <a id="{rule.code}"></a>{rule.code}: {rule.title}', "")
    needs = f", needs {'; '.join(need.value for need in rule.needs)}" if rule.needs else ""
    yield f"{str(rule.severity).capitalize()}{needs}."
    yield from ("", rule.why, "", f"Fix: {rule.fix}.")
    if rule.reports:
        links = (f"[{report}]({link})" for report, link in zip(rule.reports, rule.links, strict=True))
        yield from ("", f"Reports: {', '.join(links)}.")


if __name__ == "__main__":
    print(rules_document(), end="")
