"""An upgrade in three steps: what to change, what to measure for it, and the plan that comes of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eaglehub.convert import Conversion, plan_conversion, replan
from eaglehub.drafter.shared import HEAD, find_shared, open_target
from eaglehub.drafter.tensors import is_scale
from eaglehub.errors import UsageProblem
from eaglehub.features import Half
from eaglehub.plan.plan import Dropped, TensorStep
from eaglehub.report.findings import refusal
from eaglehub.upgrade.dequantize import dequantize
from eaglehub.upgrade.rewrite import Rewritten, add_fc_norm, fold_feedback, own_head, rounded, rounding_error
from eaglehub.upgrade.wishes import Changes, Wishes, changes, is_exact, refuse

if TYPE_CHECKING:
    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.model import DraftModel
    from eaglehub.drafter.target import Target
    from eaglehub.features import Store
    from eaglehub.reading import Answers
    from eaglehub.scoring.score import Score
    from eaglehub.upgrade.feedback import Choice
    from eaglehub.upgrade.scales import Scales

_REASONS = {
    "fc_norm": "upgraded: each aux state gets a norm of its own",
    "norm_before_fc": "upgraded: replaced by fc_norm",
    "norm_output": "upgraded: the state after the final norm is fed back",
}
_NORM = "norm.weight"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A source that can be upgraded.

    Attributes:
        conversion: of the source as it is, with a plan.
        drafter: what the source is, dequantised where that was asked for.
        todo: what is to be changed; nothing for a drafter that has it all.
        wishes: what was asked for.
        target: None when none was given.
        start: the source's canonical tensors, the target's head among them where it becomes the drafter's own.
        head_bytes: size of a head taken from the target, else 0.
    """

    conversion: Conversion
    drafter: Drafter
    todo: Changes
    wishes: Wishes
    target: Target | None
    start: Rewritten
    head_bytes: int

    @property
    def measured_target(self) -> Target:
        """The target, which `prepare` has asked for where its states are to be measured."""
        if self.target is None:
            raise ValueError("without a target there are no states to measure")
        return self.target

    @property
    def layer_ids(self) -> tuple[int, ...]:
        """The target states that it reads, in the IN convention."""
        return self.measured_target.layer_ids_for(self.drafter)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What came of it.

    Attributes:
        prepared: what was upgraded.
        conversion: with the plan of the upgraded drafter.
        gain: the constant c of the final norm; None without post-norm feedback.
        scales: of the aux states; None when they were not measured.
        choice: how c was found; None when it was given or not measured.
        rounding_error: of the folded head, relative; None without one.
        source, upgraded: scores on the half of the prompts that nothing was fitted to; None when not measured.
    """

    prepared: Prepared
    conversion: Conversion
    gain: float | None = None
    scales: Scales | None = None
    choice: Choice | None = None
    rounding_error: float | None = None
    source: Score | None = None
    upgraded: Score | None = None


def prepare(
    checkpoint: Checkpoint,
    wishes: Wishes,
    *,
    forced_format: str | None = None,
    answers: Answers | None = None,
    target: Target | None = None,
) -> Prepared:
    """Read the source, see what it lacks, refuse what cannot be done.

    Raises:
        UnusableInput: it cannot be read without doubt, or not be upgraded; the message says why.
        UsageProblem: the target is needed and was not given, or a feedback gain makes no sense.
    """
    conversion = plan_conversion(checkpoint, forced_format=forced_format, answers=answers, target=target)
    drafter = conversion.reading.drafter
    if conversion.plan is None or drafter is None:
        raise refusal(conversion.findings)
    todo = changes(drafter, wishes)
    start, head_bytes = Rewritten(drafter, conversion.reading.tensors), 0
    if todo and wishes.dequantize and drafter.quantized:
        start = dequantize(start, checkpoint)
        drafter = start.drafter
    if todo:
        refuse(drafter, start.steps, todo, wishes)
        _need_target(drafter, todo, wishes, target)
    if todo.norm_output and not drafter.head and target and target.folder:
        head = _target_head(target)
        start = own_head(start, head)
        head_bytes = start.steps[HEAD].output(checkpoint).nbytes
    return Prepared(conversion, drafter, todo, wishes, target, start, head_bytes)


def rewrite(prepared: Prepared, gain: float | None, scales: Scales | None) -> Upgrade:
    """The upgraded drafter's plan from what was measured; without measurements, from the weights alone."""
    checkpoint, todo, wishes = prepared.conversion.checkpoint, prepared.todo, prepared.wishes
    result = prepared.start
    if todo.fc_norm:
        gains = scales.gains if scales else [1.0] * prepared.drafter.num_aux_hidden_states
        init = wishes.fc_init if scales else "ones"
        old = result.steps.get("input_norm.weight")
        result = add_fc_norm(result, gains, init, _read(checkpoint, old) if old else None)
    error = None
    if todo.norm_output:
        weights = _read(checkpoint, prepared.start.steps[_NORM])
        gain = usable_gain(prepared, gain if gain is not None else float((weights.astype(float) ** 2).mean() ** 0.5))
        result = fold_feedback(result, gain, weights)
        heads = [step.steps[HEAD].output(checkpoint).chunks() for step in (prepared.start, result)]
        error = rounding_error(zip(*heads, strict=True), weights, gain)
    conversion = replan(
        prepared.conversion,
        result.drafter,
        result.steps,
        dropped=_dropped(prepared, result),
        reasons=_reasons(prepared.drafter, result.drafter),
        target=prepared.target,
    )
    return Upgrade(prepared, conversion, gain if todo.norm_output else None, scales, None, error)


def usable_gain(prepared: Prepared, gain: float) -> float:
    """The gain as the checkpoint's dtype holds it."""
    value = rounded(gain, prepared.start.steps[_NORM].dtype)
    if not 0 < value < float("inf"):
        raise UsageProblem(f"{gain:g} is not a gain that the checkpoint's dtype holds", where="--feedback-gain")
    return value


def calibrate(prepared: Prepared, store: Store, depth: int) -> Upgrade:
    """Measure on one half of the features, plan, and score source and result on the other half.

    Args:
        prepared: with a target.
        store: filled with the states at `prepared.layer_ids`.
        depth: draft positions K to judge.
    """
    from eaglehub.scoring.score import score
    from eaglehub.upgrade.scales import measure_scales

    drafter, wishes = prepared.drafter, prepared.wishes
    fitted, held_out = Half(store, 0), Half(store, 1)
    source = _model(prepared, prepared.start)
    scales = None
    if prepared.todo.fc_norm:
        count = drafter.num_aux_hidden_states
        scales = measure_scales(fitted, count, relative=drafter.norm_before_fc)
    choice = None
    gain = wishes.feedback_gain
    if prepared.todo.norm_output and gain is None:
        choice = _search(prepared, scales, fitted, depth)
        gain = choice.gain
    upgrade = rewrite(prepared, gain, scales)
    result = upgrade.conversion.reading
    upgraded = _model(prepared, Rewritten(result.drafter or drafter, result.tensors))
    return replace(
        upgrade,
        choice=choice,
        source=score(source, held_out, depth),
        upgraded=score(upgraded, held_out, depth),
    )


def _search(prepared: Prepared, scales: Scales | None, features: Half, depth: int) -> Choice:
    import torch

    from eaglehub.drafter.model import DraftModel
    from eaglehub.upgrade.feedback import search_gain

    before = prepared.start
    if scales:
        normed = replace(prepared, todo=replace(prepared.todo, norm_output=False))
        reading = rewrite(normed, None, scales).conversion.reading
        before = Rewritten(reading.drafter or prepared.drafter, reading.tensors)
    model = _model(prepared, before)
    described, tensors = replace(before.drafter, norm_output=True), model.state_dict()

    def folded(gain: float) -> DraftModel:
        constant = usable_gain(prepared, gain)
        head = (tensors[HEAD].double() * (tensors[_NORM].double() / constant)).to(tensors[HEAD].dtype)
        norm = torch.full_like(tensors[_NORM], constant)
        return DraftModel.load(described, {**tensors, HEAD: head, _NORM: norm})

    return search_gain(model, folded, features, depth, exact=prepared.drafter.norm_before_residual)


def _model(prepared: Prepared, rewritten: Rewritten) -> DraftModel:
    from eaglehub.scoring.load import load_model

    if prepared.target is None or prepared.target.folder is None:
        raise UsageProblem("measuring needs the target", where="--target")
    checkpoint = prepared.conversion.checkpoint
    return load_model(checkpoint, rewritten.steps.values(), rewritten.drafter, prepared.target.folder)


def _need_target(drafter: Drafter, todo: Changes, wishes: Wishes, target: Target | None) -> None:
    if target is not None:
        return
    if wishes.calibrate:
        raise UsageProblem("the target is needed to measure its states", where="--target", fix="or --no-calibrate")
    if todo.norm_output and not drafter.head:
        raise UsageProblem("the drafter has no lm_head, so the target's is needed", where="--target")


def _target_head(target: Target) -> TensorStep:
    if target.folder is None:
        raise UsageProblem("a folder with weights is needed", where="--target")
    weights = open_target(target.folder)
    name = find_shared(weights, HEAD)
    info = weights.tensors[name]
    return TensorStep(HEAD, name, info.dtype, info.shape, origin=weights)


def _read(checkpoint: Checkpoint, step: TensorStep) -> Any:
    from eaglehub.reading.weights import read_weights

    return read_weights(checkpoint, [step])[step.name]


def _reasons(before: Drafter, after: Drafter) -> dict[str, str]:
    gone = {"quantization_config": "the weights are dequantised"}
    return gone | {key: why for key, why in _REASONS.items() if getattr(before, key) != getattr(after, key)}


def _dropped(prepared: Prepared, result: Rewritten) -> list[Dropped]:
    used = {step.source for step in result.steps.values()}
    why = {_NORM: "its weights are in lm_head's columns", "input_norm.weight": "its weights are in fc's columns"}
    if prepared.wishes.fc_init == "ones":
        why["input_norm.weight"] = "replaced by fc_norm of ones, as asked"
    tensors = prepared.conversion.reading.tensors
    why |= {name: "its weight is dequantised" for name in tensors if is_scale(name)}
    sources = {name: tensors[name].source for name in why if name in tensors}
    return [Dropped(source, why[name]) for name, source in sources.items() if source and source not in used]


def needs_training(prepared: Prepared) -> bool:
    """Whether the result was neither measured nor is exact."""
    return not (prepared.wishes.calibrate or is_exact(prepared.drafter, prepared.todo))
