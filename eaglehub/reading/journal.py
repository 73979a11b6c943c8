"""What reading a checkpoint takes note of: findings, resolved questions, reasons for config changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from eaglehub.report.findings import Finding, Severity


@dataclass(frozen=True, slots=True)
class Answers:
    """What the user said about a checkpoint's open questions; None where they said nothing."""

    feedback: str | None = None
    norm_before_residual: bool | None = None
    aux_layer_ids: tuple[int, ...] | None = None
    aux_id_convention: str | None = None
    rope_theta: float | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """A question that the checkpoint leaves open (or that was answered for it), the answer and who gave it.

    `by` is `option`, `producer` (its documented habit), `tensors`, `target`, or `engine default`.
    """

    question: str
    answer: Any
    by: str
    why: str

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"question": self.question, "answer": self.answer, "by": self.by, "why": self.why}


@dataclass(slots=True)
class Journal:
    """Collects while the steps of a reading go by; nothing is decided here."""

    findings: list[Finding] = field(default_factory=list)
    resolutions: list[Resolution] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)

    def error(self, code: str, message: str, where: str = "", fix: str = "") -> None:
        """Something that makes the drafter wrong or unusable."""
        self.findings.append(Finding(code, Severity.ERROR, message, where, fix))

    def warn(self, code: str, message: str, where: str = "", fix: str = "") -> None:
        """Something that a person should know before serving it."""
        self.findings.append(Finding(code, Severity.WARNING, message, where, fix))

    def note(self, code: str, message: str, where: str = "", fix: str = "") -> None:
        """Something that was put right on the way."""
        self.findings.append(Finding(code, Severity.NOTE, message, where, fix))

    def resolve(self, question: str, answer: Any, by: str, why: str) -> None:
        """An open question got its answer."""
        self.resolutions.append(Resolution(question, answer, by, why))

    @property
    def errors(self) -> int:
        """How many errors were found so far."""
        return sum(finding.severity is Severity.ERROR for finding in self.findings)
