"""Reports that consist of cases which pass, fail or are skipped: what JUnit needs to know of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglehub.report.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Case:
    """One rule or check applied to one drafter.

    Attributes:
        code: stable, as the report names it.
        failure: the first line of what is wrong; empty when it passed.
        skipped: why it was not checked; empty when it was.
        output: further lines, of a failure or of a case that passed.
    """

    code: str
    title: str
    failure: str = ""
    skipped: str = ""
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """The cases of one drafter."""

    name: str
    cases: tuple[Case, ...]


class CasesReport(Report):
    """A report that can be written as JUnit XML."""

    @abstractmethod
    def suites(self) -> Iterable[Suite]:
        """The drafters, in the order they were given."""
