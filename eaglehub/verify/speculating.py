"""Checks that the drafter is worth its while: that its tokens are accepted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eaglehub.report.verdict import Verdict
from eaglehub.verify.checks import CheckResult
from eaglehub.verify.metrics import Acceptance, paired_half_width

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eaglehub.verify.checks import Check

FLOOR = 1.05
_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What is asked of a drafter.

    Attributes:
        min_acceptance_length: None asks for a lower confidence bound above `FLOOR`.
        min_position_rates: per-position acceptance rate by draft position, counted from 0.
        baseline: an earlier measurement of the same prompts.
    """

    min_acceptance_length: float | None = None
    min_position_rates: Mapping[int, float] = field(default_factory=dict)
    baseline: Acceptance | None = None


def run_speculating(
    check: Check, acceptance: Acceptance, thresholds: Thresholds, other: Acceptance | str
) -> CheckResult:
    """Judge one check of the family.

    Args:
        check: which.
        acceptance: the drafter's.
        thresholds: what is asked.
        other: the compared drafter's acceptance, or why there is none.
    """
    if not acceptance.num_drafts and check.id != "speculating.drafts":
        return CheckResult(check, Verdict.FAIL, "the engine did not draft")
    if check.id == "speculating.compare":
        return (
            CheckResult(check, Verdict.SKIPPED, other)
            if isinstance(other, str)
            else _judge_against(check, acceptance, other, "the other drafter")
        )
    return _JUDGES[check.id](check, acceptance, thresholds)


def tolerance(acceptance: Acceptance, other: Acceptance) -> float:
    """How much shorter an acceptance length may be than another: the larger of 2 % and the confidence interval."""
    return max(_TOLERANCE * other.acceptance_length, paired_half_width(acceptance, other))


def _judge_drafts(check: Check, acceptance: Acceptance, _: Thresholds) -> CheckResult:
    return CheckResult(
        check,
        Verdict.PASS if acceptance.num_drafts else Verdict.FAIL,
        f"{acceptance.num_drafts} drafts of {acceptance.num_draft_tokens} tokens",
        "drafts > 0",
        {"num_drafts": acceptance.num_drafts, "num_draft_tokens": acceptance.num_draft_tokens},
    )


def _judge_length(check: Check, acceptance: Acceptance, thresholds: Thresholds) -> CheckResult:
    low, high = acceptance.confidence_interval
    wanted = thresholds.min_acceptance_length
    passed = low > FLOOR if wanted is None else acceptance.acceptance_length >= wanted
    threshold = f"lower bound > {FLOOR:g}" if wanted is None else f"acceptance length >= {wanted:g}"
    return CheckResult(
        check,
        Verdict.PASS if passed else Verdict.FAIL,
        f"acceptance length {acceptance.acceptance_length:.3f}, 95 % between {low:.3f} and {high:.3f}",
        threshold,
        {"acceptance_length": acceptance.acceptance_length, "low": low, "high": high},
    )


def _judge_positions(check: Check, acceptance: Acceptance, thresholds: Thresholds) -> CheckResult:
    wanted = thresholds.min_position_rates
    if not wanted:
        return CheckResult(check, Verdict.SKIPPED, "no --min-position-rate is given")
    rates = acceptance.per_position_acceptance_rates
    missed = {position: rates[position] for position, rate in wanted.items() if rates[position] < rate}
    shown = missed or {position: rates[position] for position in wanted}
    return CheckResult(
        check,
        Verdict.FAIL if missed else Verdict.PASS,
        ", ".join(f"position {position}: {rate:.3f}" for position, rate in shown.items()),
        ", ".join(f"position {position} >= {rate:g}" for position, rate in wanted.items()),
        {"per_position_acceptance_rates": list(rates)},
    )


def _judge_baseline(check: Check, acceptance: Acceptance, thresholds: Thresholds) -> CheckResult:
    if thresholds.baseline is None:
        return CheckResult(check, Verdict.SKIPPED, "no --baseline is given that measured it")
    return _judge_against(check, acceptance, thresholds.baseline, "the baseline")


def _judge_against(check: Check, acceptance: Acceptance, other: Acceptance, name: str) -> CheckResult:
    ours, theirs = acceptance.acceptance_length, other.acceptance_length
    half_width, allowed = paired_half_width(acceptance, other), tolerance(acceptance, other)
    return CheckResult(
        check,
        Verdict.PASS if ours >= theirs - allowed else Verdict.FAIL,
        f"acceptance length {ours:.3f}, {name} {theirs:.3f}: {ours - theirs:+.3f} (95 % +-{half_width:.3f})",
        f"at least {name}'s less {allowed:.3f} (the larger of 2 % and the confidence interval)",
        {
            "acceptance_length": ours,
            "other_acceptance_length": theirs,
            "difference": ours - theirs,
            "half_width": half_width,
            "tolerance": allowed,
        },
    )


_JUDGES: dict[str, Callable[[Check, Acceptance, Thresholds], CheckResult]] = {
    "speculating.drafts": _judge_drafts,
    "speculating.acceptance-length": _judge_length,
    "speculating.position-rates": _judge_positions,
    "speculating.baseline": _judge_baseline,
}
