"""The constant c of post-norm feedback: it stands for the RMS of the state, so it starts there and is then searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.scoring.score import acceptance, score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from eaglehub.drafter.model import DraftModel
    from eaglehub.features import Features

_FACTORS = (0.7, 0.85, 1.18, 1.4)


@dataclass(frozen=True, slots=True)
class Choice:
    """How c was found: where it started, and the acceptance length at every position of each candidate."""

    gain: float
    start: float
    tried: dict[float, float]

    def to_json(self) -> dict[str, Any]:
        """As reports have it."""
        tried = [{"gain": gain, "every_position_acceptance_length": length} for gain, length in self.tried.items()]
        return {"gain": self.gain, "start": self.start, "tried": tried}


def search_gain(
    source: DraftModel,
    folded: Callable[[float], DraftModel],
    features: Iterable[Features],
    depth: int,
    *,
    exact: bool,
) -> Choice:
    """The RMS of the state after the first draft step, unless another candidate is better beyond chance.

    That state is what the second step's residual was trained on, and with it as a constant the RMS stays level.

    Args:
        source: with pre-norm feedback.
        folded: makes the same drafter with post-norm feedback of gain c; rounds c.
        features: of the prompts to search on.
        depth: draft positions to judge.
        exact: c changes nothing, so it need not be searched.
    """
    start = score(source, features, depth).drift["state_rms"][0]
    if exact:
        return Choice(start, start, {})
    scores = {gain: acceptance(folded(gain), features, depth) for gain in (start, *(start * each for each in _FACTORS))}
    better = [gain for gain in scores if scores[gain].ratio_to(scores[start]).low > 1]
    lengths = {gain: each.acceptance_length for gain, each in sorted(scores.items())}
    return Choice(max([start, *better], key=lengths.__getitem__), start, lengths)
