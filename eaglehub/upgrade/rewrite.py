"""The upgrade as a plan: which tensors are new or scaled, and what the description says afterwards. Nothing is run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from eaglehub.checkpoint import numpy_dtype
from eaglehub.drafter.shared import HEAD
from eaglehub.plan.operations import Cast, Scale, TakeBlock
from eaglehub.plan.plan import TensorStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from eaglehub.drafter.drafter import Drafter

_NORM_REASONS = {"calibrated": "the state's mean RMS", "folded": "its gain is in fc", "ones": "not calibrated"}


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A drafter on its way to 3.1: its description and the step that makes each tensor, by canonical name."""

    drafter: Drafter
    steps: Mapping[str, TensorStep]


def add_fc_norm(source: Rewritten, gains: Sequence[float], init: str, input_norm: np.ndarray | None) -> Rewritten:
    """A norm for each aux state, so that fc's input keeps its typical scale.

    Args:
        source: without `fc_norm`.
        gains: what each state's norm multiplies by, [A].
        init: `calibrated`: in the norms' weights; `folded`: in fc's columns; `ones`: nowhere.
        input_norm: weights of the norm over all states [A * Ht] that these norms replace, where there is one.
    """
    drafter, steps = source.drafter, dict(source.steps)
    count, width = drafter.num_aux_hidden_states, drafter.target_hidden_size
    if init == "folded":
        columns = np.repeat(np.asarray(gains, np.float64), width)
        if input_norm is not None:
            columns = columns * input_norm.astype(np.float64)
        why = "the RMS of each aux state" + (" and input_norm" if input_norm is not None else "")
        steps["fc.weight"] = steps["fc.weight"].then(Scale(tuple(columns.tolist()), why))
    old = steps.pop("input_norm.weight", None)
    norms = {}
    for chunk, gain in enumerate(gains):
        name = f"fc_norm.{chunk}.weight"
        if old and init == "calibrated":
            block = old.then(TakeBlock(chunk, count)).then(Scale((gain,), "the state's mean share of the RMS"))
            norms[name] = block.named(name)
        else:
            fill = gain if init == "calibrated" else 1.0
            norms[name] = TensorStep(name, None, drafter.dtype, (width,), fill=fill, reason=_NORM_REASONS[init])
    described = replace(drafter, fc_norm=True, norm_before_fc=False)
    return Rewritten(described, norms | steps)


def fold_feedback(source: Rewritten, gain: float, weights: np.ndarray) -> Rewritten:
    """Post-norm feedback: the final norm's weights become the constant c, and the old ones go into the head.

    Args:
        source: with pre-norm feedback.
        gain: c, already rounded to the norm's dtype, see `rounded`.
        weights: the final norm's, [H].
    """
    steps = dict(source.steps)
    norm = steps["norm.weight"]
    reason = "a constant, so that the state fed back is parallel to the one before the norm"
    steps["norm.weight"] = TensorStep("norm.weight", None, norm.dtype, norm.shape, fill=gain, reason=reason)
    factors = weights.astype(np.float64) / gain
    steps[HEAD] = steps[HEAD].then(Scale(tuple(factors.tolist()), "the final norm's weights / the constant"))
    return Rewritten(replace(source.drafter, norm_output=True), steps)


def own_head(source: Rewritten, head: TensorStep) -> Rewritten:
    """With the target's head as the drafter's own, in the drafter's dtype."""
    step = head.named(HEAD)
    step = step if step.dtype == source.drafter.dtype else step.then(Cast(source.drafter.dtype))
    return Rewritten(replace(source.drafter, head=True), {**source.steps, HEAD: step})


def rounded(gain: float, dtype: str) -> float:
    """The nearest value that the dtype holds."""
    return float(np.array(gain).astype(numpy_dtype(dtype)).astype(np.float64))


def rounding_error(pairs: Iterable[tuple[np.ndarray, np.ndarray]], weights: np.ndarray, gain: float) -> float:
    """Relative error (Frobenius) of the folded head as it is written, against head and norm weights taken together.

    Args:
        pairs: the same rows of the head before and after.
        weights: the final norm's before, [H].
        gain: its constant after.
    """
    wrong, whole = 0.0, 0.0
    for before, after in pairs:
        exact = before.astype(np.float64) * weights.astype(np.float64)
        wrong += float(np.square(after.astype(np.float64) * gain - exact).sum())
        whole += float(np.square(exact).sum())
    return math.sqrt(wrong / whole) if whole else 0.0
