"""The arithmetic of acceptance and of samples."""

from __future__ import annotations

import numpy as np
import pytest

from eaglehub.verify.metrics import Acceptance, acceptance_of, paired_half_width
from eaglehub.verify.sampling import chi_square_p


def _acceptance(histograms: list[list[int]], *, tell: bool = True) -> Acceptance:
    """From how many drafts had 0, 1, ... tokens accepted, prompt by prompt."""
    total = np.sum(histograms, axis=0)
    positions = len(total) - 1
    walks = [{"accepted": histogram} if tell else None for histogram in histograms]
    counters = {
        "drafts": int(total.sum()),
        "draft_tokens": int(total.sum()) * positions,
        "accepted_tokens_per_pos": [int(total[i + 1 :].sum()) for i in range(positions)],
    }
    return acceptance_of(
        {"counters": counters, "outputs": [{"samples": [{"walk": walk}]} for walk in walks]}, positions
    )


def test_the_names_mean_what_they_say() -> None:
    acceptance = _acceptance([[6, 2, 2], [3, 4, 3]])
    assert acceptance.num_drafts == 20
    assert acceptance.acceptance_length == pytest.approx(1 + (6 + 10) / 20)
    assert acceptance.per_position_acceptance_rates == pytest.approx((11 / 20, 5 / 20))
    assert acceptance.conditional_acceptance_rates == pytest.approx((11 / 20, 5 / 11))
    assert acceptance.acceptance_rate == pytest.approx(16 / 40)
    assert acceptance.per_prompt == ((10, 6), (10, 10))


def test_nothing_drafted() -> None:
    acceptance = _acceptance([[0, 0, 0]])
    assert acceptance.acceptance_length == 1
    assert acceptance.conditional_acceptance_rates == (None, None)
    assert acceptance.confidence_interval == (1, 1)


@pytest.mark.parametrize("tell", [True, False])
def test_the_interval_covers_the_truth(tell: bool) -> None:
    """With independent drafts both kinds of interval must hold the true length 95 times in 100."""
    rng = np.random.default_rng(0)
    chances = [0.6, 0.25, 0.15]
    truth = 1 + 0.25 + 2 * 0.15
    covered = 0
    for _ in range(400):
        acceptance = _acceptance(rng.multinomial(40, chances, size=24).tolist(), tell=tell)
        low, high = acceptance.confidence_interval
        covered += low <= truth <= high
    assert 0.92 <= covered / 400 <= 0.98


def test_prompts_that_differ_widen_the_interval() -> None:
    alike, unlike = [[30, 10, 10]] * 8, [[50, 0, 0], [10, 20, 20]] * 4
    assert _acceptance(unlike).half_width > 3 * _acceptance(unlike, tell=False).half_width
    assert _acceptance(alike).half_width == pytest.approx(0)


def test_pairing_takes_the_prompts_out_of_the_difference() -> None:
    easy_and_hard = [[50, 0, 0], [10, 20, 20]] * 4
    a_little_better = [[49, 1, 0], [9, 21, 20]] * 4
    one, other = _acceptance(easy_and_hard), _acceptance(a_little_better)
    assert paired_half_width(one, other) < 0.05 < one.half_width
    untold = _acceptance(a_little_better, tell=False)
    assert paired_half_width(one, untold) == pytest.approx(np.hypot(one.half_width, untold.half_width))


def test_the_p_value_is_uniform_for_the_same_distribution() -> None:
    rng = np.random.default_rng(1)
    weights = np.arange(1, 40) ** -1.5
    values = [
        chi_square_p([tuple(rng.choice(39, (2, 64), p=weights / weights.sum()).tolist()) for _ in range(2)])
        for _ in range(25)
    ]
    assert 0.3 < float(np.mean(values)) < 0.7
    assert min(values) > 0.001


def test_another_distribution_is_found() -> None:
    rng = np.random.default_rng(2)
    fair, loaded = ([0.25] * 4, [0.43, 0.19, 0.19, 0.19])
    pair = [rng.choice(4, 512, p=chances).tolist() for chances in (fair, loaded)]
    assert chi_square_p([(pair[0], pair[1])]) < 0.001


def test_one_token_only() -> None:
    assert chi_square_p([([7] * 9, [7] * 9)]) == 1
