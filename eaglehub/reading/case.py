"""The case at hand: everything that the steps of a reading look at, and the journal that they write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eaglehub.reading.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.target import Target
    from eaglehub.formats.spec import FormatSpec
    from eaglehub.plan.plan import TensorStep
    from eaglehub.reading.journal import Answers


@dataclass(slots=True)
class Case:
    """One checkpoint being read.

    Attributes:
        checkpoint: the source.
        spec: its format.
        config: its config, with a nested layer config lifted to the top level.
        tensors: canonical name to the step that makes it; the steps of the reading put these in canonical form.
        answers: what the user said about open questions.
        target: the target's facts, when given.
        journal: findings, resolutions and reasons so far.
        values: whether tensors may be looked into.
        companions: tensors that say again what others say: `t2d`, `d2t` of a full vocabulary, a later layer's
            `hidden_norm`. A layout may want them.
    """

    checkpoint: Checkpoint
    spec: FormatSpec
    config: Mapping[str, Any]
    tensors: dict[str, TensorStep]
    answers: Answers
    target: Target | None
    journal: Journal = field(default_factory=Journal)
    values: bool = True
    companions: dict[str, TensorStep] = field(default_factory=dict)
