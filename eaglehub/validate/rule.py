"""What a rule is, and what a check hands back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from eaglehub.report.findings import Severity
    from eaglehub.validate.subject import Subject

# By the first digit of a code.
FAMILIES = {
    "1": "Files",
    "2": "Config",
    "3": "Tensors",
    "4": "Vocabulary map",
    "5": "Values",
    "6": "Target match",
    "7": "EAGLE-3 and 3.1 semantics",
    "8": "Engine",
    "9": "Publish hygiene",
}


class Need(StrEnum):
    """What a rule looks at besides the folder; where it is not to be had, the rule is skipped and says so."""

    CONFIG = "a readable config.json"
    TENSORS = "readable weights"
    FORMAT = "a known format"
    DRAFTER = "a drafter whose sizes can be told"
    VALUES = "values"
    ALL_VALUES = "the values of all tensors"
    TARGET = "--target"
    TARGET_WEIGHTS = "the weights of --target"
    ENGINE = "an engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that can be wrong.

    Attributes:
        code: stable, `EH` (a plugin has letters of its own) and three digits; the first is the family.
        title: the fault in a few words.
        severity: of its findings, unless the engine at hand makes it more or less than that.
        why: what happens to somebody who serves or publishes such a drafter.
        fix: what to do, where the finding itself does not say it better.
        reports: public threads about it, as `owner/repo#number`.
        needs: what it looks at.
        mended: `eaglehub convert` puts it right on the way, so reading only takes note of it.
    """

    code: str
    title: str
    severity: Severity
    why: str
    fix: str
    reports: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    mended: bool = False

    @property
    def family(self) -> str:
        """Name of its family."""
        return FAMILIES[self.code[-3]]

    @property
    def links(self) -> tuple[str, ...]:
        """Addresses of the reports."""
        return tuple("https://github.com/{}/issues/{}".format(*report.split("#")) for report in self.reports)


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that is broken here; severity and fix are the rule's own unless given."""

    code: str
    message: str
    where: str = ""
    fix: str = ""
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A function that looks for some rules' faults; it is called when all it needs is there."""

    function: Callable[[Subject], Iterator[Hit]]
    needs: tuple[Need, ...] = ()
