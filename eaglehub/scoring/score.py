"""A drafter's score on features: its drafts at every slot of every answer, judged by the target's own tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from eaglehub.errors import UnusableInput
from eaglehub.scoring.acceptance import Acceptance, every_position, walk
from eaglehub.scoring.drift import DEPTH, Drift

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from eaglehub.drafter.model import DraftModel
    from eaglehub.features import Features


@dataclass(frozen=True, slots=True)
class Score:
    """What was measured.

    Attributes:
        walk: acceptance along the engine's walk.
        every_position: the same counts with a draft at every position of the answers.
        drift: measures by draft step 1 to `DEPTH`, see `Drift`.
    """

    walk: Acceptance
    every_position: Acceptance
    drift: dict[str, list[float]]

    def to_json(self) -> dict[str, Any]:
        """The acceptance of both kinds, as reports have it."""
        return {**self.walk.to_json(), "every_position": self.every_position.to_json()}


def score(model: DraftModel, features: Iterable[Features], depth: int) -> Score:
    """Draft `depth` tokens (at most `DEPTH`) from every slot of every answer.

    Args:
        model: the drafter.
        features: with at least `DEPTH` tokens after each answer; answers without lose their last slots.
        depth: draft positions K to judge.

    Raises:
        UnusableInput: no answer is long enough to judge a draft.
    """
    drift = Drift()
    judged = _judged(model, features, depth, drift)
    return Score(_acceptance(judged, walk, depth), _acceptance(judged, every_position, depth), drift.means())


def acceptance(model: DraftModel, features: Iterable[Features], depth: int) -> Acceptance:
    """Acceptance at every position alone, which takes fewer steps than a score."""
    return _acceptance(_judged(model, features, depth), every_position, depth)


def judge(model: DraftModel, features: Features, depth: int, drift: Drift | None = None) -> NDArray[np.bool_]:
    """For each slot of the answer and each draft position, whether the drafted token is the target's, [S, K].

    A slot counts from the answer's first token on, as long as the answer goes on after the token that it is fed.
    """
    steps = DEPTH if drift else depth
    slots = answer_slots(features, steps)
    if not slots:
        return np.empty((0, depth), np.bool_)
    weight = model.norm.weight
    states = features.aux if model.drafter.num_aux_hidden_states else features.head_input
    aux = states.to(weight.device, weight.dtype)[None]
    tokens = features.tokens.to(weight.device)
    watch = (lambda seen: drift.see(slots, seen)) if drift else None
    right = []
    with torch.inference_mode():
        for k, step in enumerate(model.unroll(aux, tokens[None, 1:], steps, slots, watch)):
            if drift:
                drift.see_state(k, step.before_norm)
            if k < depth:
                wanted = tokens[slots.start + 2 + k : slots.stop + 2 + k]
                right.append(model.target_ids(step.logits[0].argmax(-1)) == wanted)
    judged: NDArray[np.bool_] = torch.stack(right, dim=1).cpu().numpy()
    return judged


def answer_slots(features: Features, lookahead: int) -> range:
    """The slots from which an engine may draft, as far as the tokens that judge the drafts are known."""
    known = len(features.tokens) - 1 - lookahead
    return range(features.prompt_length - 1, max(features.prompt_length - 1, min(features.end - 2, known)))


def _judged(
    model: DraftModel, features: Iterable[Features], depth: int, drift: Drift | None = None
) -> list[NDArray[np.bool_]]:
    judged = [right for each in features if (right := judge(model, each, depth, drift)).size]
    if not judged:
        raise UnusableInput(
            "no answer is long enough to judge a draft by", where="--prompts", fix="a larger --max-tokens"
        )
    return judged


def _acceptance(judged: list[NDArray[np.bool_]], count: object, depth: int) -> Acceptance:
    counted = [count(right) for right in judged]  # type: ignore[operator]
    drafts = np.array([drafts for drafts, _ in counted], np.int64)
    return Acceptance(drafts, np.array([accepted for _, accepted in counted], np.int64).reshape(-1, depth))
