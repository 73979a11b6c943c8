"""Findings: what a command saw in a drafter, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterable


class Severity(StrEnum):
    """How bad a finding is; only an error changes the exit code."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation.

    Attributes:
        code: stable code, `EH` (a plugin has letters of its own) and three digits; the first digit is the family
            (1 files, 2 config, 3 tensors, 4 vocabulary map, 5 values, 6 target, 7 EAGLE semantics, 8 engine,
            9 publishing).
        severity: error, warning or note.
        message: what is so, naming the tensor or key.
        where: tensor name, config key or file.
        fix: what to do, an option or a command where there is one.
    """

    code: str
    severity: Severity
    message: str
    where: str = ""
    fix: str = ""

    def to_json(self) -> dict[str, str]:
        """The finding as a JSON object; empty fields are left out."""
        fields = {"code": self.code, "severity": str(self.severity), "message": self.message}
        fields |= {"where": self.where} if self.where else {}
        return fields | ({"fix": self.fix} if self.fix else {})


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether any of them is an error."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def refusal(findings: Iterable[Finding]) -> UnusableInput:
    """The first error among them, for a command that cannot go on with it."""
    error = next(finding for finding in findings if finding.severity is Severity.ERROR)
    return UnusableInput(error.message, where=error.where, fix=error.fix, code=error.code)
