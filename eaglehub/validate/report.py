"""What `eaglehub validate` and `eaglehub rules` report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.report.findings import Severity
from eaglehub.report.located import Judged, LocatedReport, Place, RuleFacts
from eaglehub.report.report import Report
from eaglehub.report.text import escaped, print_findings
from eaglehub.validate.locate import places
from eaglehub.validate.rules import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from eaglehub.drafter.target import Target
    from eaglehub.engines import Engine
    from eaglehub.report.findings import Finding
    from eaglehub.validate.judge import Judgement
    from eaglehub.validate.rule import Rule

FAIL_ON = ("error", "warning", "note", "never")


@dataclass(frozen=True)
class ValidateReport(LocatedReport):
    """The report of one run over any number of drafters.

    Attributes:
        judgements: one a path.
        engine: as which engine would serve them.
        target: the target's facts, when given.
        codes: the rules that were asked for.
        fail_on: the mildest severity that makes the exit code 1.
    """

    kind: ClassVar[str] = "validate"
    bare_lines: ClassVar[bool] = True
    judgements: tuple[Judgement, ...]
    engine: Engine | None
    target: Target | None
    codes: frozenset[str]
    fail_on: str = "error"

    @property
    def exit_code(self) -> int:
        """The highest of all drafters: 0, 1 for findings, or that of an input or machine problem."""
        return max((self._exit_code(judgement) for judgement in self.judgements), default=0)

    def data(self) -> dict[str, Any]:
        """Everything, with the place of each finding."""
        return {
            "engine": {"id": self.engine.id, "version": self.engine.version} if self.engine else None,
            "target": self.target.name if self.target else None,
            "target_revision": self.target.revision if self.target else None,
            "fail_on": self.fail_on,
            "summary": {str(severity): self._count()[severity] for severity in Severity},
            "drafters": [
                {
                    "name": judged.name,
                    "revision": judgement.folder.revision,
                    "format": judgement.format or None,
                    "exit_code": self._exit_code(judgement),
                    "checked": sorted(self.codes - judged.skipped.keys()),
                    "skipped": [{"code": code, "reason": reason} for code, reason in judged.skipped.items()],
                    "findings": [
                        finding.to_json() | {"file": place.file, "line": place.line}
                        for finding, place in judged.findings
                    ],
                }
                for judgement, judged in zip(self.judgements, self.judged(), strict=True)
            ],
        }

    def render(self, console: Console) -> None:
        """The findings of each drafter, and one line in all."""
        for judgement in self.judgements:
            findings = self._asked(judgement)
            if findings:
                console.print(escaped(judgement.title), style="bold", soft_wrap=True)
                print_findings(console, findings)
        counts = self._count()
        words = [f"{counts[severity]} {severity}{'s' * (counts[severity] != 1)}" for severity in Severity]
        drafters = f"{len(self.judgements)} drafter{'s' * (len(self.judgements) != 1)}"
        served = f"as served by {self.engine.name}" if self.engine else "for no engine"
        far = sum(judgement.folder.headers_only for judgement in self.judgements)
        unread = f", {far} without most of their weights (--values downloads them)" if far else ""
        console.print(f"{drafters} checked {served}{unread}: {', '.join(words)}", soft_wrap=True)

    def rules(self) -> Iterable[RuleFacts]:
        """The rules that were asked for."""
        return (facts(CATALOGUE[code]) for code in sorted(self.codes))

    def judged(self) -> Iterable[Judged]:
        """The drafters with the places of their findings."""
        for judgement in self.judgements:
            yield Judged(judgement.name, self._places(judgement), self._skipped(judgement))

    def _places(self, judgement: Judgement) -> tuple[tuple[Finding, Place], ...]:
        return tuple((finding, place) for finding, place in places(judgement) if finding.code in self.codes)

    def _skipped(self, judgement: Judgement) -> dict[str, str]:
        return {code: reason for code, reason in judgement.skipped.items() if code in self.codes}

    def _asked(self, judgement: Judgement) -> list[Finding]:
        return [finding for finding in judgement.findings if finding.code in self.codes]

    def _exit_code(self, judgement: Judgement) -> int:
        grave = FAIL_ON[: FAIL_ON.index(self.fail_on) + 1] if self.fail_on != "never" else ()
        return max(judgement.exit_code, int(any(finding.severity in grave for finding in self._asked(judgement))))

    def _count(self) -> Counter[Severity]:
        return Counter(finding.severity for judgement in self.judgements for finding in self._asked(judgement))


def facts(rule: Rule) -> RuleFacts:
    """A rule as reporters show it."""
    return RuleFacts(rule.code, rule.title, rule.severity, rule.why, rule.fix, rule.links)


@dataclass(frozen=True)
class RulesReport(Report):
    """The catalogue, or a part of it; `detailed` says all that is known of each rule."""

    kind: ClassVar[str] = "rules"
    rules: tuple[Rule, ...]
    detailed: bool = False

    def data(self) -> dict[str, Any]:
        """Every field of every rule."""
        return {
            "rules": [
                {
                    "code": rule.code,
                    "family": rule.family,
                    "title": rule.title,
                    "severity": str(rule.severity),
                    "why": rule.why,
                    "fix": rule.fix,
                    "needs": [need.value for need in rule.needs],
                    "reports": list(rule.links),
                }
                for rule in self.rules
            ]
        }

    def render(self, console: Console) -> None:
        """One line a rule, or a paragraph."""
        for rule in self.rules:
            console.print(f"{rule.code}  {rule.severity:7}  {rule.title}", soft_wrap=True)
            if self.detailed:
                console.print(f"\n{rule.why}\n\nfix: {rule.fix}")
                for link in rule.links:
                    console.print(link, soft_wrap=True)
