"""Faithfulness and diagnosis on small random drafters, with prompts whose tokens are just what the drafter foresees."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import save_file  # noqa: E402

from eaglehub.drafter.model import DraftModel  # noqa: E402
from eaglehub.drafter.target import Target  # noqa: E402
from eaglehub.features import Features  # noqa: E402
from eaglehub.verify.checks import CATALOGUE  # noqa: E402
from eaglehub.verify.diagnosis import DECLARED, MUTED, Differences, Measured, differences, judge_cause  # noqa: E402
from eaglehub.verify.faithful import judge_drafts  # noqa: E402
from eaglehub.verify.readings import measure_readings  # noqa: E402
from eaglehub.verify.reference import Recorded, Reference  # noqa: E402
from tests.models.build import describe, random_model  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

CAUSE, DRAFTS = CATALOGUE["diagnosis.cause"], CATALOGUE["faithful.drafts"]
IDS, PROMPTS, PROMPT, LENGTH, DEPTH = (2, 6, 9), 4, 8, 24, 3
QUERY, KEY = (f"layers.0.self_attn.{part}_proj.weight" for part in "qk")


def sound(architecture: str = "llama", **flags: Any) -> DraftModel:
    """A drafter that is sure of what it says, and tells positions apart."""
    model = random_model(describe(architecture, **flags))
    names = [name for name in model.state_dict() if name.startswith(("lm_head", "layers.0.self_attn"))]
    return DraftModel.load(model.drafter, model.state_dict() | {name: 3 * model.state_dict()[name] for name in names})


def changed(model: DraftModel, tensors: dict[str, Any] | None = None, **described: Any) -> DraftModel:
    return DraftModel.load(replace(model.drafter, **described), model.state_dict() | (tensors or {}))


@cache
def foreseen(architecture: str = "llama") -> tuple[Recorded, ...]:
    """Prompts whose every token is the one that the sound drafter puts first, with its drafts."""
    model = sound(architecture)
    return tuple(_foreseen(model, torch.Generator().manual_seed(seed)) for seed in range(PROMPTS))


@torch.inference_mode()
def _foreseen(model: DraftModel, generator: Any) -> Recorded:
    states = {layer: torch.randn(LENGTH, 64, generator=generator) for layer in range(1, 11)}
    aux = torch.cat([states[layer] for layer in IDS], dim=-1)
    tokens, drafts = torch.randint(160, (PROMPT,), generator=generator).tolist(), []
    for length in range(PROMPT, LENGTH + 1):
        context = torch.tensor([tokens[1:length]])
        steps = model.draft(aux[None, : length - 1], context, DEPTH)
        drafted = [int(model.target_ids(step.logits.argmax(-1))) for step in steps]
        drafts.append([length - 2, *drafted])
        tokens.append(drafted[0])
    features = Features(torch.tensor(tokens), PROMPT, len(tokens), aux, aux)
    return Recorded(features, states, torch.tensor(drafts))


def target(folder: Path | None = None) -> Target:
    return Target("t", (), "llama", 64, 160, 12, 256, 10000.0, None, folder=folder)


def best(model: DraftModel, ids: tuple[int, ...] = IDS, folder: Path | None = None) -> Measured:
    measured = measure_readings(Reference(model, ids, foreseen(model.drafter.architecture)), target(folder))
    assert measured[0].name == DECLARED
    return max(measured, key=lambda reading: reading.probability)


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "mla"])
def test_no_other_reading_of_a_sound_drafter_is_better(architecture: str) -> None:
    measured = measure_readings(Reference(sound(architecture), IDS, foreseen(architecture)), target())
    # Nothing has trained the second draft step, so chance decides which state is the better one to feed back.
    judged = [reading for reading in measured if not reading.name.startswith("norm_output")]
    assert len(judged) >= 8
    assert judge_cause(CAUSE, judged, [], []).verdict == "pass"


def test_layer_ids_off_by_one() -> None:
    for shift in (-1, 1):
        assert best(sound(), tuple(layer + shift for layer in IDS)).name == "layer ids [2, 6, 9]"


def test_a_map_of_another_row() -> None:
    model = sound()
    assert best(changed(model, {"d2t": model.d2t.roll(1)})).name == "d2t of the row after"
    assert best(changed(model, {"d2t": model.d2t.roll(-1)})).name == "d2t of the row before"


def test_a_map_of_ids() -> None:
    model = sound()
    # As offsets these reach beyond the 160 tokens that there are.
    wide = {"d2t": model.d2t + torch.arange(48), "embed_tokens.weight": model.embed_tokens.weight.detach().repeat(2, 1)}
    assert best(changed(model, wide, vocab_size=320)).name == "d2t as the target's ids"


def test_another_rope_base() -> None:
    assert best(changed(sound(), rope_theta=20.0)).name == "rope_theta 10000"


@pytest.mark.parametrize("name", ["interleaved", "in halves"])
def test_rows_in_the_other_order(name: str) -> None:
    model = sound()
    pairs = {"interleaved": (2, -1), "in halves": (-1, 2)}[name]
    order = torch.arange(16).view(*pairs).T.flatten()
    weights = {each: model.state_dict()[each].unflatten(0, (-1, 16))[:, order].flatten(0, 1) for each in (QUERY, KEY)}
    assert best(changed(model, weights)).name == f"rows of q_proj and k_proj that were {name}"


def test_an_embedding_of_another_target(tmp_path: Path) -> None:
    model = sound()
    save_file({"model.embed_tokens.weight": model.embed_tokens.weight.detach()}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    other = torch.randn(160, 64, generator=torch.Generator().manual_seed(5))
    assert best(changed(model, {"embed_tokens.weight": other}), folder=tmp_path).name == "the target's embed_tokens"
    names = [each.name for each in measure_readings(Reference(model, IDS, foreseen()), target(tmp_path))]
    assert "the target's embed_tokens" not in names


def test_states_that_were_not_recorded_are_not_tried() -> None:
    without = tuple(replace(each, states={layer: each.states[layer] for layer in IDS}) for each in foreseen())
    names = [reading.name for reading in measure_readings(Reference(sound(), IDS, without), target())]
    assert not any(name.startswith("layer ids") for name in names)


def test_the_engine_drafts_as_the_file_says() -> None:
    for architecture in ("llama", "mla"):
        result = judge_drafts(DRAFTS, Reference(sound(architecture), IDS, foreseen(architecture)), "float32")
        assert result.verdict == "pass", result.evidence
        assert result.evidence["drafts"] == PROMPTS * (LENGTH - PROMPT + 1)
        assert result.evidence["tokens_per_position"][1] > 0


@pytest.mark.parametrize(
    "other",
    [{"norm_output": True}, {"norm_before_residual": True}, {"rope_theta": 20.0}],
    ids=lambda flags: next(iter(flags)),
)
def test_an_engine_that_reads_otherwise(other: dict[str, Any]) -> None:
    result = judge_drafts(DRAFTS, Reference(changed(sound(), **other), IDS, foreseen()), "float32")
    assert result.verdict == "fail"
    difference = result.evidence["differences"][0]
    assert difference["gap"] > 0.001
    assert difference["token"] != difference["expected"]


def test_a_tie_is_no_difference() -> None:
    model = sound()
    twins = model.lm_head.weight.detach().clone()
    twins[1::2] = twins[::2]
    recorded = tuple(
        _foreseen(changed(model, {"lm_head.weight": twins}), torch.Generator().manual_seed(1)) for _ in "a"
    )
    other = changed(model, {"lm_head.weight": twins.view(24, 2, 64).flip(1).reshape(48, 64) * 1.00001})
    result = judge_drafts(DRAFTS, Reference(other, IDS, recorded), "float32")
    assert (result.verdict, result.evidence["num_differences"]) == ("pass", 0)


def measured(name: str, probability: float, half_width: float = 0.01) -> Measured:
    return Measured(name, probability, 1 + probability, probability / 0.4, half_width)


READINGS = [measured(DECLARED, 0.4), measured("norm_output false", 0.39), measured(MUTED, 0.1)]


def test_a_better_reading_is_named_with_both_figures() -> None:
    result = judge_cause(CAUSE, [*READINGS, measured("rope_theta 10000", 0.5)], [], [])
    assert result.verdict == "fail"
    assert "with rope_theta 10000 it drafts better: probability of the target's token 0.500 instead of 0.400" in (
        result.summary
    )


def test_a_difference_within_its_interval_is_none() -> None:
    assert judge_cause(CAUSE, [*READINGS, measured("rope_theta 10000", 0.44, 0.11)], [], []).verdict == "pass"
    assert judge_cause(CAUSE, [*READINGS, measured("rope_theta 10000", 0.404, 0.001)], [], []).verdict == "pass"


def test_attention_of_no_use_is_a_failure() -> None:
    result = judge_cause(CAUSE, [*READINGS[:2], measured(MUTED, 0.41)], [], [])
    assert result.verdict == "fail"
    assert result.summary.startswith("unexplained: its attention is of no use: muted, the probability")
    found = differences(identity("2"), identity("1"), "the baseline")
    named = judge_cause(CAUSE, [*READINGS[:2], measured(MUTED, 0.41)], [found], []).summary
    assert named.startswith("differs from the baseline in fc.weight, norm.weight; its attention is of no use")


def test_a_missed_threshold_without_a_cause_is_unexplained() -> None:
    result = judge_cause(CAUSE, READINGS, [], ["speculating.acceptance-length"])
    assert (result.verdict, result.summary) == ("fail", "unexplained: no other reading is better")
    assert judge_cause(CAUSE, "there is no torch", [], ["x"]).summary == "unexplained: there is no torch"
    assert judge_cause(CAUSE, "there is no torch", [], []).verdict == "skipped"


def identity(digest: str = "1", **config: Any) -> dict[str, Any]:
    tensors = [{"name": name, "shape": [2], "sha256": digest} for name in ("fc.weight", "norm.weight")]
    return {"config": {"fc_norm": True, "transformers_version": digest} | config, "tensors": tensors}


def test_the_same_weights_read_otherwise_than_in_the_baseline() -> None:
    pair = (identity(norm_output=False), identity(norm_output=True))
    assert judge_cause(CAUSE, READINGS, [differences(*pair, "the other drafter")], []).verdict == "pass"
    found = differences(*pair, "the baseline", binding=True)
    result = judge_cause(CAUSE, READINGS, [found], [])
    assert result.verdict == "fail"
    assert result.summary == "differs from the baseline in norm_output (true, now false); no other reading is better"


def test_other_weights_are_a_cause_only_where_something_is_missed() -> None:
    found = differences(identity("2", eos=1), identity("1"), "the baseline")
    assert found == Differences("the baseline", ("eos (absent, now 1)",), ("fc.weight", "norm.weight"), 2, False)
    assert judge_cause(CAUSE, READINGS, [found], []).verdict == "pass"
    missed = judge_cause(CAUSE, READINGS, [found], ["speculating.baseline"])
    assert missed.summary.startswith(
        "differs from the baseline in eos (absent, now 1); fc.weight, norm.weight; no other"
    )


def test_no_difference_at_all() -> None:
    found = differences(identity("1"), identity("1") | {"config": {"fc_norm": True}}, "the baseline")
    assert str(found) == ""
