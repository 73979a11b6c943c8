"""What `eaglehub finetune` reports, and what it leaves in `eaglehub.json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.checkpoint import read_json_object
from eaglehub.convert import PROVENANCE_FILE
from eaglehub.report.report import Report
from eaglehub.report.text import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.finetune.finetune import Tuned
    from eaglehub.finetune.settings import Settings
    from eaglehub.scoring.acceptance import Ratio
    from eaglehub.scoring.score import Score


@dataclass(frozen=True)
class FinetuneReport(Report):
    """The report of one run.

    Attributes:
        tuned: what came of it.
        settings: how it was trained.
        facts: number and digest of the conversations and of the held-out ones, and what they were augmented with.
        depth: draft positions that were judged.
        output: the destination as the user wrote it.
    """

    kind: ClassVar[str] = "finetune"
    tuned: Tuned
    settings: Settings
    facts: Mapping[str, Any]
    depth: int
    output: str

    @property
    def exit_code(self) -> int:
        """1 when the drafter has not become better."""
        return 0 if self.tuned.better else 1

    def data(self) -> dict[str, Any]:
        """The record, and where it was written."""
        conversion = self.tuned.prepared.conversion
        return {
            "source": {
                "name": conversion.checkpoint.name,
                "revision": conversion.checkpoint.revision,
                "format": conversion.reading.detection.spec.id,
            },
            "output": self.output,
            "finetune": self.record,
        }

    @property
    def record(self) -> dict[str, Any]:
        """What `eaglehub.json` keeps under `finetune`."""
        tuned, progress = self.tuned, self.tuned.progress
        return {
            "tensors": tuned.prepared.names,
            "settings": asdict(self.settings),
            "data": {**self.facts, "tokens": tuned.tokens, "longest_tokens": tuned.longest},
            "num_speculative_tokens": self.depth,
            "steps": progress.step,
            "best_step": progress.best_step,
            "kept": tuned.better,
            "curve": [each._asdict() for each in progress.curve],
            "before": _score(tuned.before),
            "after": _score(tuned.after),
            "ratio": _ratio(tuned)._asdict(),
        }

    def render(self, console: Console) -> None:
        """What was trained, how acceptance went, and what was kept."""
        for label, line in self._lines():
            console.print(escaped(f"{label:9} {line}"), soft_wrap=True)
        kept = "the trained drafter" if self.tuned.better else "the drafter as it was: training has not made it better"
        console.print(escaped(f"wrote {self.output}: {kept}"), style="bold", soft_wrap=True)

    def _lines(self) -> Iterator[tuple[str, str]]:
        tuned = self.tuned
        count = len(tuned.prepared.names)
        yield "trained", f"{self.settings.trainable}: {count} tensors, {tuned.progress.step} steps"
        yield "data", f"{self.facts['conversations']} conversations, {tuned.tokens} tokens, longest {tuned.longest}"
        for each in tuned.progress.curve:
            mark = "  best" if each.step == tuned.progress.best_step else ""
            yield f"step {each.step}", f"acceptance length at every position {each.acceptance_length:.3f}{mark}"
        for label, score in (("before", tuned.before), ("after", tuned.after)):
            yield label, score.walk.line()
            yield "", f"at every position {score.every_position.acceptance_length:.3f}"
        ratio = _ratio(tuned)
        yield (
            "gained",
            f"{ratio.value - 1:+.1%} [{ratio.low - 1:+.1%}, {ratio.high - 1:+.1%}] at every position",
        )


def inherited(checkpoint: Checkpoint) -> dict[str, Any]:
    """What the source's own `eaglehub.json` tells of an upgrade that still holds for the result."""
    if PROVENANCE_FILE not in checkpoint.other_files:
        return {}
    own = read_json_object(checkpoint.path_of(PROVENANCE_FILE))
    return {"upgrade": own["upgrade"]} if isinstance(own.get("upgrade"), dict) else {}


def _score(score: Score) -> dict[str, Any]:
    return score.to_json() | {"state_rms": score.drift["state_rms"]}


def _ratio(tuned: Tuned) -> Ratio:
    """Acceptance length at every position after over that before."""
    return tuned.after.every_position.ratio_to(tuned.before.every_position)
