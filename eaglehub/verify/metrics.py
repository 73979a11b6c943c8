"""Acceptance of drafted tokens, from the counters that vLLM keeps along its walk.

A draft is asked for after the first generated token, and then after each step's accepted tokens and one more. The names
are the same everywhere in eaglehub; a mean over every position of a text is another quantity and has another name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Two-sided 95 % quantiles: of the normal distribution, and of Student's for 1, 2, ... degrees of freedom.
_Z = 1.959964
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What became of the drafts of one batch of prompts.

    Attributes:
        num_drafts: how many times the drafter was asked.
        num_draft_tokens: tokens that it drafted.
        accepted_per_position: for each of the K draft positions how many were accepted.
        per_prompt: (drafts, accepted tokens) of each prompt; None where vLLM does not tell, or the prompt was left out.
    """

    num_drafts: int
    num_draft_tokens: int
    accepted_per_position: tuple[int, ...]
    per_prompt: tuple[tuple[int, int] | None, ...]

    @property
    def num_accepted_tokens(self) -> int:
        """Drafted tokens that the target kept."""
        return sum(self.accepted_per_position)

    @property
    def acceptance_length(self) -> float:
        """Tokens a step, the target's own included: 1 + accepted / drafts."""
        return 1 + _share(self.num_accepted_tokens, self.num_drafts)

    @property
    def acceptance_rate(self) -> float:
        """Accepted of the drafted tokens."""
        return _share(self.num_accepted_tokens, self.num_draft_tokens)

    @property
    def per_position_acceptance_rates(self) -> tuple[float, ...]:
        """Accepted at each position / drafts."""
        return tuple(_share(accepted, self.num_drafts) for accepted in self.accepted_per_position)

    @property
    def conditional_acceptance_rates(self) -> tuple[float | None, ...]:
        """Accepted at each position of those accepted at the one before; None where there were none."""
        reached = (self.num_drafts, *self.accepted_per_position[:-1])
        pairs = zip(self.accepted_per_position, reached, strict=True)
        return tuple(accepted / before if before else None for accepted, before in pairs)

    @property
    def half_width(self) -> float:
        """Half of the 95 % confidence interval of the acceptance length.

        Prompts are what was sampled, so they are the units; where vLLM does not tell them apart, drafts are.
        """
        prompts = self._known_prompts()
        if len(prompts) > 1:
            return _half_width(_residuals(prompts))
        return _Z * math.sqrt(self._variance_by_draft() / max(self.num_drafts, 1))

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """Bounds of the acceptance length at 95 %; it cannot be below 1."""
        return max(1.0, self.acceptance_length - self.half_width), self.acceptance_length + self.half_width

    def _known_prompts(self) -> list[tuple[int, int]]:
        return [counts for counts in self.per_prompt if counts and counts[0]]

    def _variance_by_draft(self) -> float:
        # A draft with j accepted tokens counts at positions 0 to j-1, so E[j^2] = sum over i of (2i + 1) P(j > i).
        rates = self.per_position_acceptance_rates
        square = sum((2 * i + 1) * rate for i, rate in enumerate(rates))
        return max(0.0, square - (self.acceptance_length - 1) ** 2)

    def to_json(self) -> dict[str, Any]:
        """As the report has it."""
        low, high = self.confidence_interval
        return {
            "acceptance_length": self.acceptance_length,
            "confidence_interval": {"low": low, "high": high, "unit": self._unit()},
            "acceptance_rate": self.acceptance_rate,
            "num_drafts": self.num_drafts,
            "num_draft_tokens": self.num_draft_tokens,
            "num_accepted_tokens": self.num_accepted_tokens,
            "per_position_acceptance_rates": list(self.per_position_acceptance_rates),
            "conditional_acceptance_rates": list(self.conditional_acceptance_rates),
            "per_prompt": [
                counts and {"num_drafts": counts[0], "num_accepted_tokens": counts[1]} for counts in self.per_prompt
            ],
        }

    def _unit(self) -> str:
        return "prompt" if len(self._known_prompts()) > 1 else "draft"


def acceptance_of(job: Mapping[str, Any], num_speculative_tokens: int) -> Acceptance:
    """The acceptance in one of the worker's jobs."""
    counters = job["counters"]
    positions = counters.get("accepted_tokens_per_pos") or [0] * num_speculative_tokens
    return Acceptance(
        counters.get("drafts", 0),
        counters.get("draft_tokens", 0),
        tuple(positions),
        tuple(_walk(output) for output in job["outputs"]),
    )


def paired_half_width(one: Acceptance, other: Acceptance) -> float:
    """Half of the 95 % confidence interval of the difference of two acceptance lengths on the same prompts.

    Falls back to independent samples where the prompts cannot be paired.
    """
    pairs = [(a, b) for a, b in zip(one.per_prompt, other.per_prompt, strict=False) if a and b and a[0] and b[0]]
    if len(pairs) < 2 or len(one.per_prompt) != len(other.per_prompt):
        return math.hypot(one.half_width, other.half_width)
    residuals = _residuals([a for a, _ in pairs]) - _residuals([b for _, b in pairs])
    return _half_width(residuals)


def ratio_half_width(pairs: Sequence[tuple[float, float]]) -> float:
    """Half of the 95 % confidence interval of the sum of the second numbers over that of the first; 0 for one pair."""
    return _half_width(_residuals(pairs)) if len(pairs) > 1 else 0.0


def _walk(output: Mapping[str, Any] | None) -> tuple[int, int] | None:
    if output is None or not output["samples"][0]["walk"]:
        return None
    histogram = output["samples"][0]["walk"]["accepted"]
    return sum(histogram), sum(accepted * count for accepted, count in enumerate(histogram))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _residuals(prompts: Sequence[tuple[float, float]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Each prompt's share in the deviation of accepted / drafts, whose mean is 0: the linearised ratio."""
    drafts, accepted = np.array(prompts, dtype=float).T
    ratio = accepted.sum() / drafts.sum()
    residuals: np.ndarray[Any, np.dtype[np.float64]] = (accepted - ratio * drafts) / drafts.mean()
    return residuals


def _half_width(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Of the 95 % confidence interval of a mean."""
    return _quantile(values.size - 1) * float(values.std(ddof=1)) / math.sqrt(values.size)


def _quantile(freedom: int) -> float:
    """Student's, by its expansion around the normal one where there is enough freedom for that."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    return _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)
