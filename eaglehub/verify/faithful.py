"""Whether the engine computes what the file says: its drafts against those of the reference drafter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from eaglehub.report.verdict import Verdict
from eaglehub.verify.checks import CheckResult
from eaglehub.verify.lossless import NOISE

if TYPE_CHECKING:
    from torch import Tensor

    from eaglehub.drafter.model import DraftModel
    from eaglehub.features import Features
    from eaglehub.verify.checks import Check
    from eaglehub.verify.reference import Reference

# Rounding can add up along a chain of draft steps to more than a tie, now and then.
_TOLERATED = 0.01
_SHOWN = 8


@dataclass(slots=True)
class Comparison:
    """Drafted tokens of engine and reference: the same, tied or different, by draft position where they are judged."""

    drafts: int = 0
    compared: list[int] = field(default_factory=list)
    ties: int = 0
    differences: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As evidence; only the first few differences are listed."""
        return {
            "drafts": self.drafts,
            "tokens": sum(self.compared),
            "tokens_per_position": self.compared,
            "num_ties": self.ties,
            "num_differences": len(self.differences),
            "differences": self.differences[:_SHOWN],
        }


def judge_drafts(check: Check, reference: Reference, dtype: str) -> CheckResult:
    """Judge `faithful.drafts`; `dtype` is the engine's."""
    noise = NOISE.get(dtype, NOISE["bfloat16"])
    comparison = Comparison()
    for number, recorded in enumerate(reference.recorded):
        features = recorded.reading(reference.layer_ids) if reference.layer_ids else recorded.features
        if features is None:
            return CheckResult(
                check, Verdict.SKIPPED, f"the states of layers {list(reference.layer_ids)} are not known"
            )
        _compare(comparison, reference.model, features, recorded.drafts, noise, number)
    tokens, wrong = sum(comparison.compared), len(comparison.differences)
    verdict = Verdict.FAIL if wrong > _TOLERATED * tokens else Verdict.WARN if wrong else Verdict.PASS
    what = (
        f"{wrong} of {tokens} drafted tokens are not the reference drafter's"
        if wrong
        else (f"{tokens} drafted tokens of {comparison.drafts} drafts are the reference drafter's")
    )
    tied = f", {comparison.ties} of them up to a tie" if comparison.ties else ""
    threshold = f"the same tokens or ties (less than {noise:g} nats apart, {dtype}), but for {_TOLERATED:.0%}"
    return CheckResult(check, verdict, what + tied, threshold, comparison.to_json())


def _compare(
    comparison: Comparison, model: DraftModel, features: Features, drafts: Tensor, noise: float, prompt: int
) -> None:
    """As far as each draft is right, and one token further: so long both drafters were fed the same."""
    depth, length = drafts.shape[1] - 1, len(features.aux)
    first = int(drafts[:, 0].min())
    weight = model.norm.weight
    tokens = functional.pad(features.tokens, (0, depth)).to(weight.device)
    slots = range(first, length)
    with torch.inference_mode():
        steps = model.unroll(features.aux.to(weight)[None], tokens[None, 1:], depth, slots)
        logits = torch.stack([step.logits[0] for step in steps], dim=1).cpu()
    ids = model.target_ids(torch.arange(logits.shape[-1], device=weight.device)).cpu()
    comparison.compared = comparison.compared or [0] * depth
    for position, *drafted in drafts.tolist():
        comparison.drafts += 1
        for k, token in enumerate(drafted):
            row = logits[position - first, k]
            gap = _gap(row, ids, token)
            comparison.compared[k] += 1
            if gap > noise:
                found = {"prompt": prompt, "position": position, "draft_position": k, "token": token, "gap": gap}
                comparison.differences.append(found | {"expected": int(ids[row.argmax()])})
            elif gap > 0:
                comparison.ties += 1
            if position + 2 + k >= len(features.tokens) or token != int(features.tokens[position + 2 + k]):
                break


def _gap(logits: Tensor, ids: Tensor, token: int) -> float:
    """Nats between the reference's best token and this one; a token that it cannot draft is as far as its worst."""
    rows = (ids == token).nonzero()
    own = logits[rows].max() if len(rows) else logits.min()
    return float(logits.max() - own)
