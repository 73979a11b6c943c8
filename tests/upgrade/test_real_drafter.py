"""What an upgrade costs a real drafter on prompts that it has never seen; and what wrong upgrades cost."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import torch

from eaglehub.checkpoint import open_checkpoint
from eaglehub.drafter.model import DraftModel
from eaglehub.drafter.target import read_target
from eaglehub.scoring.candidate import read_candidate
from eaglehub.scoring.load import load_model
from eaglehub.scoring.score import Score, answer_slots, score
from tests.reports import validate

from ..cli_runner import run
from .conftest import MAX_TOKENS

if TYPE_CHECKING:
    from pathlib import Path

    from eaglehub.features import Store

pytestmark = pytest.mark.slow
DEPTH = 5


@cache
def model_of(folder: Path, target: Path, dtype: str = "float32") -> DraftModel:
    candidate = read_candidate(open_checkpoint(folder), read_target(target))
    tensors = candidate.reading.tensors.values()
    return load_model(candidate.checkpoint, tensors, candidate.drafter, target, dtype)


@pytest.fixture(scope="module")
def upgraded(
    real_drafter: Path, real_target: Path, fresh_prompts: Path, store_root: Path, tmp_path_factory: Any
) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("upgraded") / "drafter"
    result = run(
        "upgrade", real_drafter, out, "--target", real_target, "--prompts", fresh_prompts, "--json",
        "--max-tokens", str(MAX_TOKENS), "--ignore-eos", "--features", store_root,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return out, validate(result)


@pytest.fixture(scope="module")
def source_score(real_drafter: Path, real_target: Path, fresh_store: Store) -> Score:
    return score(model_of(real_drafter, real_target), fresh_store, DEPTH)


def length(result: Score) -> float:
    return result.every_position.acceptance_length


def changed(model: DraftModel, described: dict[str, Any], tensors: dict[str, torch.Tensor]) -> DraftModel:
    return DraftModel.load(replace(model.drafter, **described), {**model.state_dict(), **tensors})


def test_an_upgrade_keeps_the_acceptance_and_flattens_the_state(
    upgraded: tuple[Path, dict[str, Any]], real_target: Path, fresh_store: Store, source_score: Score
) -> None:
    result = score(model_of(upgraded[0], real_target), fresh_store, DEPTH)

    assert length(result) >= 0.98 * length(source_score)
    assert result.walk.acceptance_length >= 0.98 * source_score.walk.acceptance_length
    before, after = source_score.drift["state_rms"], result.drift["state_rms"]
    assert before[7] > 1.5 * before[0]
    assert after[7] < 1.2 * after[0]


def test_the_command_reports_what_it_kept(upgraded: tuple[Path, dict[str, Any]]) -> None:
    record = upgraded[1]["upgrade"]

    assert record["ratio"]["value"] >= 0.98
    assert record["aux_scales"]["sink_positions"] == [0]
    assert record["aux_scales"]["gains"] == pytest.approx([2.8, 6.3, 23.1], rel=0.1)
    assert record["feedback_gain"] == pytest.approx(20.3, rel=0.1)


def test_flipping_the_flags_destroys_it(
    real_drafter: Path, real_target: Path, fresh_store: Store, source_score: Score
) -> None:
    source = model_of(real_drafter, real_target)
    ones = {f"fc_norm.{chunk}.weight": torch.ones(576) for chunk in range(3)}

    flipped = score(changed(source, {"fc_norm": True, "norm_output": True}, ones), fresh_store, DEPTH)

    assert length(flipped) <= 0.7 * length(source_score)


@pytest.mark.parametrize("wrong", ["gain off by four", "gains of two layers swapped"])
def test_a_wrong_upgrade_is_seen(
    upgraded: tuple[Path, dict[str, Any]], real_target: Path, fresh_store: Store, wrong: str
) -> None:
    right = model_of(upgraded[0], real_target)
    weights = right.state_dict()
    off = {
        "gain off by four": {
            "norm.weight": weights["norm.weight"] / 4,
            "lm_head.weight": weights["lm_head.weight"] * 4,
        },
        "gains of two layers swapped": {
            "fc_norm.0.weight": weights["fc_norm.2.weight"],
            "fc_norm.2.weight": weights["fc_norm.0.weight"],
        },
    }

    result = score(changed(right, {}, off[wrong]), fresh_store, DEPTH)
    reference = score(right, fresh_store, DEPTH)

    assert result.every_position.ratio_to(reference.every_position).high < 1


def feedback_only(real_drafter: Path, real_target: Path, gain: float, dtype: torch.dtype) -> DraftModel:
    """The source with its feedback folded and nothing else changed; what is new is rounded to `dtype`."""
    source = model_of(real_drafter, real_target)
    weights = source.state_dict()
    head = weights["lm_head.weight"].double() * weights["norm.weight"].double() / gain
    norm = torch.full_like(weights["norm.weight"], gain)
    return changed(source, {"norm_output": True}, {"lm_head.weight": head.to(dtype).float(), "norm.weight": norm})


def test_feedback_alone_leaves_the_first_draft_as_it_was(
    upgraded: tuple[Path, dict[str, Any]], real_drafter: Path, real_target: Path, fresh_store: Store
) -> None:
    source = model_of(real_drafter, real_target)
    folded = feedback_only(real_drafter, real_target, upgraded[1]["upgrade"]["feedback_gain"], torch.float32)

    with torch.inference_mode():
        for features in fresh_store:
            slots = answer_slots(features, 1)
            before, after = (
                next(model.unroll(features.aux[None], features.tokens[None, 1:], 1, slots)).logits[0]
                for model in (source, folded)
            )
            differ = before.argmax(-1) != after.argmax(-1)
            top = before.topk(2).values[differ]
            assert (top[:, 0] - top[:, 1] < 1e-3).all()


def test_rounding_the_folded_head_to_bfloat16_costs_next_to_nothing(
    upgraded: tuple[Path, dict[str, Any]],
    real_drafter: Path,
    real_target: Path,
    fresh_store: Store,
    source_score: Score,
) -> None:
    """Acceptance of the first draft within 0.2 percentage points."""
    folded = feedback_only(real_drafter, real_target, upgraded[1]["upgrade"]["feedback_gain"], torch.bfloat16)

    rates = score(folded, fresh_store, DEPTH).every_position.per_position_acceptance_rates

    assert rates[0] == pytest.approx(source_score.every_position.per_position_acceptance_rates[0], abs=0.002)
