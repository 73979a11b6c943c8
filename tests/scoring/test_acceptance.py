"""Acceptance along the engine's walk and at every position, on drafts made up by hand."""

from __future__ import annotations

import numpy as np
import pytest

from eaglehub.scoring.acceptance import Acceptance, every_position, walk

RIGHT = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 1], [0, 0, 0], [1, 1, 0], [1, 0, 0]], np.bool_)


def test_the_walk_goes_on_after_what_was_accepted() -> None:
    drafts, accepted = walk(RIGHT)

    # Slot 0 has two accepted, so slot 3 is next; it has one, so slot 5 is next, which ends the answer.
    assert drafts == 3
    assert accepted.tolist() == [3, 2, 0]


def test_a_draft_counts_up_to_its_first_error_only() -> None:
    drafts, accepted = every_position(RIGHT)

    assert drafts == 7
    assert accepted.tolist() == [5, 3, 1]


def test_names_and_numbers_are_those_of_an_engine() -> None:
    acceptance = Acceptance(np.array([3, 7]), np.array([[3, 2, 0], [5, 3, 1]]))

    report = acceptance.to_json()

    assert report["num_drafts"] == 10
    assert report["num_draft_tokens"] == 30
    assert report["acceptance_length"] == pytest.approx(1 + 14 / 10)
    assert report["acceptance_rate"] == pytest.approx(14 / 30)
    assert report["per_position_acceptance_rates"] == pytest.approx([0.8, 0.5, 0.1])
    assert report["conditional_acceptance_rates"] == pytest.approx([0.8, 5 / 8, 1 / 5])


def test_more_prompts_make_the_interval_narrower() -> None:
    rng = np.random.default_rng(1)
    accepted = rng.integers(0, 20, size=(200, 1))
    few, many = (Acceptance(np.full(count, 20), accepted[:count]) for count in (10, 200))

    widths = [np.subtract(*each.confidence_interval()[::-1]) for each in (few, many)]

    assert widths[1] < widths[0] / 3
    low, high = many.confidence_interval()
    assert low < many.acceptance_length < high


def test_prompts_are_compared_in_pairs() -> None:
    rng = np.random.default_rng(1)
    accepted = rng.integers(0, 20, size=(50, 1))
    one, other = Acceptance(np.full(50, 20), accepted), Acceptance(np.full(50, 20), accepted + 1)

    _, low, high = other.ratio_to(one)

    assert 1.03 < low < high < 1.05
