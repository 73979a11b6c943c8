"""What `eaglehub upgrade` reports, and what it leaves in `eaglehub.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.formats.config_paths import MISSING
from eaglehub.report.report import Report
from eaglehub.report.text import escaped, print_findings
from eaglehub.upgrade.upgrade import needs_training

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from eaglehub.scoring.acceptance import Ratio
    from eaglehub.scoring.score import Score
    from eaglehub.upgrade.upgrade import Upgrade

_HEADLINES = {
    "upgraded": "wrote {output}",
    "unchanged": "nothing to upgrade: {source} already has what was asked for",
    "planned": "dry run: nothing was run or written",
}


@dataclass(frozen=True)
class UpgradeReport(Report):
    """The report of one upgrade.

    Attributes:
        upgrade: what came of it.
        status: a key of `_HEADLINES`.
        depth: draft positions that were judged.
        output: the destination as the user wrote it; empty when nothing was written.
        store_bytes: upper bound of the features' size; 0 without a target run.
    """

    kind: ClassVar[str] = "upgrade"
    upgrade: Upgrade
    status: str
    depth: int
    output: str = ""
    store_bytes: int = 0

    def data(self) -> dict[str, Any]:
        """The plan's changes and what was measured."""
        conversion = self.upgrade.conversion
        plan = conversion.plan
        return {
            "source": {
                "name": conversion.checkpoint.name,
                "revision": conversion.checkpoint.revision,
                "format": conversion.reading.detection.spec.id,
            },
            "status": self.status,
            "output": self.output or None,
            "findings": [finding.to_json() for finding in conversion.findings],
            "features_bytes": self.store_bytes,
            "tensors": [
                {"name": step.name, "operation": step.describe(), "dtype": step.dtype, "shape": list(step.shape)}
                for step in (plan.steps if plan else ())
                if not step.verbatim
            ],
            "config_edits": [edit.to_json() for edit in (plan.edits if plan else ())],
            "upgrade": record(self.upgrade, self.depth),
        }

    def render(self, console: Console) -> None:
        """Changes, measurements, and what they are worth."""
        conversion = self.upgrade.conversion
        title = conversion.reading.detection.spec.title
        console.print(escaped(f"source   {conversion.checkpoint.name}: {title}"), style="bold", soft_wrap=True)
        for label, line in self._lines():
            console.print(escaped(f"{label:8} {line}"), soft_wrap=True)
        print_findings(console, conversion.findings)
        names = {"source": conversion.checkpoint.name, "output": self.output}
        console.print(escaped(_HEADLINES[self.status].format(**names)), style="bold", soft_wrap=True)

    def _lines(self) -> Iterator[tuple[str, str]]:
        if self.status == "unchanged":
            return
        upgrade = self.upgrade
        if upgrade.conversion.plan:
            for step in upgrade.conversion.plan.steps:
                if not step.verbatim and step.reason + "".join(each.describe() for each in step.operations):
                    yield "tensor", f"{step.name}: {step.describe()}"
            for edit in upgrade.conversion.plan.edits:
                if edit.reason.startswith("upgraded"):
                    before = "absent" if edit.before is MISSING else edit.before
                    yield "config", f"{edit.key}: {before} -> {edit.after}"
        if upgrade.prepared.head_bytes:
            yield "head", f"the target's becomes the drafter's own: {upgrade.prepared.head_bytes / 1e6:.1f} MB more"
        if self.store_bytes:
            yield "features", f"up to {self.store_bytes / 1e6:.1f} MB of the target's states"
        for statement in statements(upgrade):
            yield ("exact" if statement["exact"] else "approx."), statement["what"]
        if self.status == "planned" and upgrade.prepared.wishes.calibrate:
            yield "to come", "the norms' weights and the constant above are placeholders until the target has run"
            return
        yield from _measured(upgrade)
        if self.status == "upgraded" and needs_training(upgrade.prepared):
            yield "warning", "nothing was measured: fine-tune it before it is served"


def record(upgrade: Upgrade, depth: int) -> dict[str, Any]:
    """What `eaglehub.json` keeps under `upgrade`."""
    prepared = upgrade.prepared
    fc_init = prepared.wishes.fc_init if prepared.wishes.calibrate else "ones"
    scores, ratio = {"source": upgrade.source, "upgraded": upgrade.upgraded}, _ratio(upgrade)
    return {
        "fc_norm": prepared.todo.fc_norm,
        "norm_output": prepared.todo.norm_output,
        "fc_init": fc_init if prepared.todo.fc_norm else None,
        "feedback_gain": upgrade.gain,
        "gain_search": upgrade.choice.to_json() if upgrade.choice else None,
        "head_rounding_error": upgrade.rounding_error,
        "head_bytes_added": prepared.head_bytes,
        "aux_scales": upgrade.scales.to_json() if upgrade.scales else None,
        "statements": statements(upgrade),
        "needs_training": needs_training(prepared),
        "num_speculative_tokens": depth,
        "measured": {name: _score(score) for name, score in scores.items() if score} or None,
        "ratio": ratio and ratio._asdict(),
    }


def statements(upgrade: Upgrade) -> list[dict[str, Any]]:
    """What is exact and what approximate about the result, in words."""
    prepared = upgrade.prepared
    drafter, said = prepared.drafter, []
    if prepared.todo.fc_norm and not (prepared.wishes.calibrate and prepared.wishes.fc_init != "ones"):
        what = "fc_norm: not calibrated, so every state enters fc with an RMS of one, whatever it had"
        said.append({"exact": False, "what": what})
    elif prepared.todo.fc_norm and drafter.norm_before_fc:
        what = "fc_norm: the norm over all states together is replaced by one a state times its mean share"
        said.append({"exact": False, "what": what})
    elif prepared.todo.fc_norm:
        what = "fc_norm: each state is divided by its own RMS and multiplied by the mean one; only its length differs"
        said.append({"exact": False, "what": what})
    if prepared.todo.norm_output:
        logits = "feedback: the logits of any state are unchanged, up to the rounding of the folded head"
        said.append({"exact": True, "what": logits})
        what = "feedback: attention and MLP read the state through hidden_norm, which does not see its length"
        said.append({"exact": True, "what": what})
        if not drafter.norm_before_residual:
            what = "feedback: the residual's length is pinned to the constant; its direction is kept"
            said.append({"exact": False, "what": what})
    return said


def _score(score: Score) -> dict[str, Any]:
    return score.to_json() | {"state_rms": score.drift["state_rms"]}


def _ratio(upgrade: Upgrade) -> Ratio | None:
    """Acceptance length after the upgrade over that before."""
    return upgrade.upgraded.walk.ratio_to(upgrade.source.walk) if upgrade.source and upgrade.upgraded else None


def _measured(upgrade: Upgrade) -> Iterator[tuple[str, str]]:
    if upgrade.scales:
        scales = upgrade.scales
        left = f", {scales.outliers} of {scales.tokens} tokens left out" if scales.outliers else ""
        sinks = f" (massive at position {', '.join(map(str, scales.sinks))})" if scales.sinks else ""
        yield "aux RMS", f"{_numbers(scales.gains, 3)}{left}{sinks}"
    if upgrade.gain is not None:
        error = upgrade.rounding_error or 0.0
        yield "feedback", f"constant {upgrade.gain:g}; rounding error of the folded head {error:.1e}"
    for label, score in (("source", upgrade.source), ("upgraded", upgrade.upgraded)):
        if score:
            yield label, score.walk.line()
            yield (
                "",
                f"at every position {score.every_position.acceptance_length:.3f}; "
                + (f"state RMS by draft step {_numbers(score.drift['state_rms'], 1)}"),
            )
    if ratio := _ratio(upgrade):
        yield "kept", f"{ratio.value:.1%} of the acceptance length [{ratio.low:.1%}, {ratio.high:.1%}]"


def _numbers(values: list[float], digits: int) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values)
