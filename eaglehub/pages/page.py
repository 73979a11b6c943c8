"""A page as data: what stands on it and in which order, whether it is written as HTML or as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

GOOD, BAD, CAUTION, MUTED = "good", "bad", "caution", "muted"
"""Tones: how a value is to be taken. A tone is never the only thing that says so."""

_LONG_LABEL = 24


@dataclass(frozen=True, slots=True)
class Cell:
    """A table's cell that has a tone."""

    text: str
    tone: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells below headings; the first column names the row. With `numbers`, the others are aligned right."""

    kind: ClassVar[str] = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    numbers: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; `low` and `high` are the bounds of its confidence interval."""

    value: float
    text: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars from zero, a group a row.

    Attributes:
        measure: what their lengths are, with the unit.
        series: names of the bars of each group, in their order.
        groups: a label, and a bar (or none) a series.
        full: what a bar of full length stands for; None for the longest one.
    """

    kind: ClassVar[str] = "bars"
    measure: str
    series: Sequence[str]
    groups: Sequence[tuple[str, Sequence[Bar | None]]]
    full: float | None = None

    @property
    def top(self) -> float:
        """What a bar of full length stands for."""
        if self.full:
            return self.full
        ends = [max(bar.value, bar.high or 0.0) for _, bars in self.groups for bar in bars if bar]
        return max(ends, default=0.0) or 1.0

    @property
    def wide(self) -> bool:
        """Whether the labels leave no room for another chart beside this one."""
        return any(len(label) > _LONG_LABEL for label, _ in self.groups)

    def share(self, value: float) -> str:
        """Of the full length, in percent."""
        return f"{100 * value / self.top:.2f}"


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values."""

    kind: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong: what, in which words it was found, and lines that help."""

    kind: ClassVar[str] = "problem"
    title: str
    text: str
    tone: str
    details: Sequence[tuple[str, str]] = ()
    log: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the headline."""

    label: str
    value: str
    note: str = ""


Block = Table | Bars | Facts | Problem


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a sentence on what is shown, and the blocks that show it."""

    title: str
    blocks: Sequence[Block]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """The headline and the sections that bear it out.

    Attributes:
        title: what it is about.
        verdict: a word or two; empty where nothing is judged.
        tone: of the verdict.
        summary: the verdict's reason in a sentence.
    """

    title: str
    verdict: str
    tone: str
    summary: str
    figures: Sequence[Figure]
    sections: Sequence[Section]
    footer: str
