"""What is to be changed in a drafter, and the reasons for which it cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglehub.drafter.shared import HEAD
from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from eaglehub.drafter.drafter import Drafter

FC_INITS = ("calibrated", "ones", "folded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asked for.

    Attributes:
        fc_norm: a norm on each aux state.
        norm_output: post-norm feedback.
        fc_init: of `FC_INITS`: the measured RMS as the norms' weights, ones, or ones with the RMS in fc's columns.
        calibrate: run the target to measure.
        feedback_gain: the constant c; None to search for it.
        dequantize: make quantised weights ordinary ones.
    """

    fc_norm: bool = True
    norm_output: bool = True
    fc_init: str = "calibrated"
    calibrate: bool = True
    feedback_gain: float | None = None
    dequantize: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """Which of the two changes of EAGLE 3.1 the drafter still lacks and shall get."""

    fc_norm: bool
    norm_output: bool

    def __bool__(self) -> bool:
        return self.fc_norm or self.norm_output


def changes(drafter: Drafter, wishes: Wishes) -> Changes:
    """What there is to do."""
    return Changes(wishes.fc_norm and not drafter.fc_norm, wishes.norm_output and not drafter.norm_output)


def is_exact(drafter: Drafter, todo: Changes) -> bool:
    """Whether the result computes the same as the source whatever the states are, so that nothing need be measured."""
    return not todo.fc_norm and (drafter.norm_before_residual or not todo.norm_output)


def refuse(drafter: Drafter, tensors: Collection[str], todo: Changes, wishes: Wishes) -> None:
    """Raise the first reason against it.

    Args:
        drafter: the source.
        tensors: canonical names of its tensors.
        todo: what is to be changed.
        wishes: what was asked for.

    Raises:
        UnusableInput: with the reason.
    """
    for reason, fix in _reasons(drafter, tensors, todo, wishes):
        raise UnusableInput(f"cannot be upgraded: {reason}", where="drafter", fix=fix)


def _reasons(drafter: Drafter, tensors: Collection[str], todo: Changes, wishes: Wishes) -> Iterator[tuple[str, str]]:
    if drafter.parallel_drafting:
        yield "it drafts in parallel (P-EAGLE), so no state is fed back", ""
    if "mla_plain_q" in drafter.traits():
        yield "q_lora_rank is null, which no engine's drafter class loads", ""
    touched = {HEAD: todo.norm_output, "fc.weight": todo.fc_norm and wishes.fc_init == "folded"}
    for name, changed in touched.items():
        if changed and drafter.quantized and name.replace("weight", "weight_scale") in _scaled(tensors):
            yield f"{name} is quantised, and its columns are to be scaled", "--dequantize"
    if drafter.quantized and wishes.calibrate:
        yield "a quantised drafter cannot be run here, so nothing can be measured", "--dequantize or --no-calibrate"
    if todo.norm_output and "norm.weight" not in tensors:
        yield "there is no final norm weight to fold into the head", ""
    if todo.norm_output and HEAD not in tensors and drafter.pruned:
        yield "it has no lm_head of its own, and the target's has other rows than the draft vocabulary", ""
    if todo.fc_norm and not drafter.num_aux_hidden_states:
        yield "it reads no aux states, so there is nothing for fc_norm to normalise", "--no-fc-norm"


def _scaled(tensors: Collection[str]) -> set[str]:
    """`NAME.weight_scale` for every weight that has scale tensors of whatever name beside it."""
    return {f"{name.rpartition('.')[0]}.weight_scale" for name in tensors if "weight_" in name.rpartition(".")[2]}
