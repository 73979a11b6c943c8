"""What `eaglehub evaluate` reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.checkpoint.hashing import folder_digest
from eaglehub.report.report import Report
from eaglehub.report.text import escaped
from eaglehub.scoring.drift import MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from eaglehub.evaluate.evaluate import Evaluation
    from eaglehub.scoring.acceptance import Ratio
    from eaglehub.scoring.score import Score

_DIGITS = {"state_rms": 2, "sink_mass": 4, "recent_mass": 4, "attention_entropy": 3}


@dataclass(frozen=True)
class EvaluateReport(Report):
    """Scores of one drafter, and of another one on the same answers.

    Attributes:
        target: the target's name.
        depth: draft positions K.
        max_tokens: of an answer.
        target_revision: its commit on the Hub, None where there is none.
    """

    kind: ClassVar[str] = "evaluate"
    target: str
    depth: int
    max_tokens: int
    drafter: Evaluation
    compare: Evaluation | None = None
    target_revision: str | None = None

    def data(self) -> dict[str, Any]:
        """Both sides in the same form."""
        return {
            "target": self.target,
            "target_revision": self.target_revision,
            "num_speculative_tokens": self.depth,
            "max_tokens": self.max_tokens,
            "drafter": _side(self.drafter),
            "compare": _side(self.compare) if self.compare else None,
            "ratio": {suite: self._ratio(suite)._asdict() for suite in self.drafter.scores} if self.compare else None,
        }

    def render(self, console: Console) -> None:
        """Tables, one line a suite."""
        for line in self._lines():
            console.print(escaped(line), soft_wrap=True)

    def sides(self) -> list[Evaluation]:
        """The drafter, and what it is compared with."""
        return [self.drafter, *([self.compare] if self.compare else [])]

    def _lines(self) -> Iterator[str]:
        yield f"target  {self.target}, greedy, {self.depth} draft tokens"
        for side in self.sides():
            yield ""
            yield side.candidate.checkpoint.name
            rows = [_HEADINGS, *(_row(suite, score) for suite, score in side.scores.items())]
            widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
            for row in rows:
                yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            plain = next(iter(side.scores.items()))
            yield f"  drift by draft step, {plain[0]} (flat is healthy)"
            for name in MEASURES:
                yield f"    {name:18} {'  '.join(_drift(name, plain[1]))}"
        if self.compare:
            yield ""
            yield "compare / drafter, acceptance length"
            for suite in self.drafter.scores:
                yield f"  {suite:12} {_ratio_text(self._ratio(suite))}"

    def _ratio(self, suite: str) -> Ratio:
        if self.compare is None:
            raise ValueError("there is nothing to compare with")
        return self.compare.scores[suite].walk.ratio_to(self.drafter.scores[suite].walk)


_HEADINGS = ["suite", "prompts", "acceptance length", "per position", "at every position"]


def _row(suite: str, score: Score) -> list[str]:
    low, high = score.walk.confidence_interval()
    rates = " ".join(f"{rate:.3f}" for rate in score.walk.per_position_acceptance_rates)
    length = f"{score.walk.acceptance_length:.3f} [{low:.3f}, {high:.3f}]"
    return [suite, str(len(score.walk.drafts)), length, rates, f"{score.every_position.acceptance_length:.3f}"]


def _drift(name: str, score: Score) -> list[str]:
    return [f"{value:.{_DIGITS[name]}f}" for value in score.drift[name]]


def _ratio_text(ratio: Ratio) -> str:
    return f"{ratio.value:.1%} [{ratio.low:.1%}, {ratio.high:.1%}]"


def _side(evaluation: Evaluation) -> dict[str, Any]:
    drafter = evaluation.candidate.drafter
    suites = {
        suite: {
            "prompts": len(score.walk.drafts),
            **score.to_json(),
            "drift": score.drift,
        }
        for suite, score in evaluation.scores.items()
    }
    return {
        "name": evaluation.candidate.checkpoint.name,
        "revision": evaluation.candidate.checkpoint.revision,
        "digest": folder_digest(evaluation.candidate.checkpoint.hash_files()),
        "format": evaluation.candidate.reading.detection.spec.id,
        "flags": drafter.flags,
        "suites": suites,
    }
