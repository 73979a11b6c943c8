"""How fast tokens come with the drafter and without it, at several numbers of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eaglehub.report.verdict import Verdict
from eaglehub.verify.checks import CheckResult
from eaglehub.verify.metrics import ratio_half_width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eaglehub.verify.checks import Check


@dataclass(frozen=True, slots=True)
class Timed:
    """One request: its output tokens, and the seconds from sending it to its first and its last of them."""

    tokens: int
    first_token_s: float
    seconds: float

    @property
    def inter_token_s(self) -> float:
        """Mean seconds between two tokens; drafts make tokens arrive in bursts, which this evens out."""
        return (self.seconds - self.first_token_s) / max(self.tokens - 1, 1)


@dataclass(frozen=True, slots=True)
class Pace:
    """All requests of one run at one concurrency, and the seconds from the first one's start to the last one's end."""

    requests: tuple[Timed, ...]
    seconds: float

    @property
    def tokens(self) -> int:
        """Output tokens in all."""
        return sum(request.tokens for request in self.requests)

    @property
    def tokens_per_second_per_user(self) -> float:
        """What a user sees while being served: output tokens / seconds spent in requests, the prompt's included."""
        return self.tokens / sum(request.seconds for request in self.requests)

    def to_json(self) -> dict[str, Any]:
        """As the report has it; quantiles are over requests."""
        return {
            "tokens_per_second_per_user": self.tokens_per_second_per_user,
            "tokens_per_second": self.tokens / self.seconds,
            "first_token_s": _quantiles([request.first_token_s for request in self.requests]),
            "inter_token_s": _quantiles([request.inter_token_s for request in self.requests]),
        }


@dataclass(frozen=True, slots=True)
class Level:
    """One concurrency; `target` is None where only a server with its drafter was measured."""

    concurrency: int
    target: Pace | None
    drafter: Pace

    def to_json(self) -> dict[str, Any]:
        """As the report has it."""
        speedup = _speedup(self.target, self.drafter) if self.target else None
        return {
            "concurrency": self.concurrency,
            "requests": len(self.drafter.requests),
            "output_tokens": self.drafter.tokens,
            "target": self.target.to_json() if self.target else None,
            "drafter": self.drafter.to_json(),
            "speedup": speedup and dict(zip(("value", "low", "high"), speedup, strict=True)),
        }

    def line(self) -> str:
        """For a person at a terminal."""
        speed = f"{self.drafter.tokens_per_second_per_user:.1f} tokens/s a user"
        if self.target is None:
            return f"concurrency {self.concurrency}: {speed}"
        ratio, low, high = _speedup(self.target, self.drafter)
        alone = f"{self.target.tokens_per_second_per_user:.1f} without the drafter"
        return f"concurrency {self.concurrency}: {speed}, {alone}: {ratio:.2f} times ({low:.2f} to {high:.2f})"


def paces(levels: Sequence[Mapping[str, Any]]) -> dict[int, Pace]:
    """By concurrency, from what `pacing.run_at` returned."""
    return {
        level["concurrency"]: Pace(tuple(Timed(**request) for request in level["requests"]), level["seconds"])
        for level in levels
    }


def compare_levels(target: Mapping[str, Any], drafter: Mapping[str, Any]) -> tuple[Level, ...]:
    """From the two runs' `fast` jobs."""
    alone, drafted = paces(target["levels"]), paces(drafter["levels"])
    return tuple(Level(concurrency, alone[concurrency], pace) for concurrency, pace in drafted.items())


def judge_speedup(check: Check, levels: Sequence[Level], wanted: Mapping[int, float]) -> CheckResult:
    """Fails when a wanted speedup is missed; without any it never fails, but warns where the drafter slows vLLM down.

    Args:
        check: `fast.speedup`.
        levels: what was measured.
        wanted: least speedup by concurrency.
    """
    if not levels:
        return CheckResult(check, Verdict.SKIPPED, "no prompt is short enough for the engine")
    bounds = {level.concurrency: _speedup(level.target, level.drafter) for level in levels if level.target}
    speedups = {concurrency: speedup for concurrency, (speedup, _, _) in bounds.items()}
    missed = any(speedups[concurrency] < least for concurrency, least in wanted.items())
    slower = not wanted and any(high < 1 for _, _, high in bounds.values())
    return CheckResult(
        check,
        Verdict.FAIL if missed else Verdict.WARN if slower else Verdict.PASS,
        ", ".join(f"{speedup:.2f} times at concurrency {each}" for each, speedup in speedups.items()),
        ", ".join(f"{least:g} times at concurrency {each}" for each, least in wanted.items()),
        {"speedups": {str(each): speedup for each, speedup in speedups.items()}},
    )


def _speedup(target: Pace, drafter: Pace) -> tuple[float, float, float]:
    """Ratio of the users' rates, with its 95 % confidence interval over requests, which are paired by prompt."""
    pairs = [(ours.seconds, theirs.seconds) for ours, theirs in zip(drafter.requests, target.requests, strict=True)]
    ratio = drafter.tokens_per_second_per_user / target.tokens_per_second_per_user
    half_width = ratio_half_width(pairs)
    return ratio, max(0.0, ratio - half_width), ratio + half_width


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    return {"median": float(np.median(values)), "p90": float(np.quantile(values, 0.9))}
