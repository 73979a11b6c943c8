"""Acceptance of drafts judged against known answers: along the engine's walk, and at every position.

The walk is the engine's: a draft after the first token of the answer, the next after the accepted tokens and one more.
Its numbers have the names that `verify` gives to vLLM's. The mean over every position is another quantity, larger where
a text is easy, and has its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RESAMPLES = 2000
_LEVEL = 95.0


class Ratio(NamedTuple):
    """Of two acceptance lengths, with its bounds at 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What became of the drafts of P prompts at K draft positions.

    Attributes:
        drafts: number of drafts of each prompt, [P].
        accepted: how many were accepted at each position, [P, K].
    """

    drafts: NDArray[np.int64]
    accepted: NDArray[np.int64]

    @property
    def acceptance_length(self) -> float:
        """Tokens a step, the target's own included: 1 + accepted / drafts."""
        return 1 + _share(self.accepted.sum(), self.drafts.sum())

    @property
    def per_position_acceptance_rates(self) -> list[float]:
        """Accepted at each position / drafts."""
        return [_share(count, self.drafts.sum()) for count in self.accepted.sum(axis=0)]

    @property
    def conditional_acceptance_rates(self) -> list[float | None]:
        """Accepted at each position of those accepted at the one before; None where there were none."""
        counts = [self.drafts.sum(), *self.accepted.sum(axis=0)]
        return [_share(after, before) if before else None for before, after in pairwise(counts)]

    def confidence_interval(self) -> tuple[float, float]:
        """Bounds of the acceptance length at 95 %, by bootstrap over prompts."""
        return _bounds(self._resampled(_draws(len(self.drafts))))

    def ratio_to(self, other: Acceptance) -> Ratio:
        """This acceptance length over that of `other` on the same prompts; bounds by paired bootstrap."""
        draws = _draws(len(self.drafts))
        bounds = _bounds(self._resampled(draws) / other._resampled(draws))
        return Ratio(self.acceptance_length / other.acceptance_length, *bounds)

    def line(self) -> str:
        """For people: the length with its bounds, and the rates."""
        low, high = self.confidence_interval()
        rates = " ".join(f"{rate:.3f}" for rate in self.per_position_acceptance_rates)
        return f"acceptance length {self.acceptance_length:.3f} [{low:.3f}, {high:.3f}], {rates}"

    def to_json(self) -> dict[str, Any]:
        """As reports have it."""
        low, high = self.confidence_interval()
        drafts, accepted = int(self.drafts.sum()), int(self.accepted.sum())
        drafted = drafts * self.accepted.shape[1]
        return {
            "acceptance_length": self.acceptance_length,
            "confidence_interval": {"low": low, "high": high, "unit": "prompt"},
            "acceptance_rate": _share(accepted, drafted),
            "num_drafts": drafts,
            "num_draft_tokens": drafted,
            "num_accepted_tokens": accepted,
            "per_position_acceptance_rates": self.per_position_acceptance_rates,
            "conditional_acceptance_rates": self.conditional_acceptance_rates,
        }

    def _resampled(self, draws: NDArray[np.int64]) -> NDArray[np.float64]:
        accepted = self.accepted.sum(axis=1)[draws].sum(axis=1)
        lengths: NDArray[np.float64] = 1 + accepted / np.maximum(self.drafts[draws].sum(axis=1), 1)
        return lengths


def walk(right: NDArray[np.bool_]) -> tuple[int, NDArray[np.int64]]:
    """Drafts, and accepted ones at each position [K], of one answer.

    Args:
        right: for each slot of the answer in order, whether each drafted token is the target's, [S, K].
    """
    kept = np.cumprod(right, axis=1)
    lengths = kept.sum(axis=1)
    slot, drafts, accepted = 0, 0, np.zeros(right.shape[1], np.int64)
    while slot < len(kept):
        drafts += 1
        accepted += kept[slot]
        slot += int(lengths[slot]) + 1
    return drafts, accepted


def every_position(right: NDArray[np.bool_]) -> tuple[int, NDArray[np.int64]]:
    """The same counts with a draft at every slot, as if each were the walk's."""
    return len(right), np.cumprod(right, axis=1).sum(axis=0)


def _draws(prompts: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(prompts, size=(_RESAMPLES, prompts))


def _bounds(values: NDArray[np.float64]) -> tuple[float, float]:
    rest = (100 - _LEVEL) / 2
    low, high = np.percentile(values, [rest, 100 - rest])
    return float(low), float(high)


def _share(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else 0.0
