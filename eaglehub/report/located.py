"""Reports whose findings have a place in a file: what SARIF, JUnit and GitHub need to know of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglehub.report.cases import Case, CasesReport, Suite
from eaglehub.report.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from eaglehub.report.report import Report


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """A rule as reporters show it."""

    code: str
    title: str
    severity: Severity
    why: str
    fix: str
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A file, relative to the working directory where it is below that, and a line in it from 1 on."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Judged:
    """One drafter: its findings with their places, and the rules that were not checked with the reason."""

    name: str
    findings: tuple[tuple[Finding, Place], ...]
    skipped: Mapping[str, str]


class LocatedReport(CasesReport):
    """A report that can be written in every format."""

    @abstractmethod
    def rules(self) -> Iterable[RuleFacts]:
        """The rules that were asked for, in the order of their codes."""

    @abstractmethod
    def judged(self) -> Iterable[Judged]:
        """The drafters, in the order they were given."""

    def suites(self) -> Iterator[Suite]:
        """A case a rule: errors are failures, warnings and notes are output of a case that passed."""
        rules = list(self.rules())
        for judged in self.judged():
            yield Suite(judged.name, tuple(_case(rule, judged) for rule in rules))


def located(report: Report) -> LocatedReport:
    """The report, for a reporter that needs places; the command line offers those formats for no other report."""
    if not isinstance(report, LocatedReport):
        raise TypeError(f"a report of kind {report.kind} has no places in files")
    return report


def _case(rule: RuleFacts, judged: Judged) -> Case:
    mine = [finding for finding, _ in judged.findings if finding.code == rule.code]
    failure = next((_line(finding) for finding in mine if finding.severity is Severity.ERROR), "")
    skipped = "" if mine else judged.skipped.get(rule.code, "")
    return Case(rule.code, rule.title, failure, skipped, tuple(map(_line, mine)))


def _line(finding: Finding) -> str:
    fix = f" (fix: {finding.fix})" if finding.fix else ""
    where = f"{finding.where}: " if finding.where else ""
    return f"{finding.severity}: {where}{finding.message}{fix}"
