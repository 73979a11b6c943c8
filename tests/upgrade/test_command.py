"""`eaglehub upgrade` on drafters of random weights: what is written, what is kept exactly, what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch
from jsonschema import Draft202012Validator
from safetensors.torch import load_file, save_file

from eaglehub.checkpoint import open_checkpoint
from eaglehub.drafter.model import DraftModel
from eaglehub.drafter.target import read_target
from eaglehub.resources import resource
from eaglehub.scoring.candidate import read_candidate
from eaglehub.scoring.load import load_model
from tests.drafters import build
from tests.models.build import random_inputs
from tests.models.tiny_target import fitting, write_drafter, write_target
from tests.reports import validate

from ..cli_runner import Result, run

if TYPE_CHECKING:
    from pathlib import Path

DEPTH = 4
QUICK = ("--max-tokens", "8", "--json")


def load(folder: Path, target: Path) -> DraftModel:
    candidate = read_candidate(open_checkpoint(folder), read_target(target))
    return load_model(candidate.checkpoint, candidate.reading.tensors.values(), candidate.drafter, target)


def logits(model: DraftModel) -> list[torch.Tensor]:
    aux, tokens = random_inputs(model.drafter, 12, DEPTH)
    with torch.inference_mode():
        return [step.logits for step in model.unroll(5 * aux, tokens, DEPTH)]


def upgrade(source: Path, out: Path, target: Path, prompts: Path, *options: str) -> dict[str, Any]:
    result = run("upgrade", source, out, "--target", target, "--prompts", prompts, *QUICK, *options)
    assert result.exit_code == 0, result.stderr
    return validate(result)


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "mla"])
def test_an_upgrade_is_written_with_both_changes(
    tmp_path: Path, target: Path, prompts: Path, architecture: str
) -> None:
    source = write_drafter(tmp_path / "source", fitting(architecture), torch.bfloat16)

    report = upgrade(source, tmp_path / "out", target, prompts)

    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["fc_norm"], config["norm_output"], config["norm_before_fc"]) == (True, True, False)
    assert (config["draft_vocab_size"], config["tie_word_embeddings"]) == (200, False)
    assert config["eagle_aux_hidden_state_layer_ids"] == [1, 3, 5]
    assert report["upgrade"]["head_rounding_error"] < 2**-8
    provenance = json.loads((tmp_path / "out" / "eaglehub.json").read_text())
    Draft202012Validator(json.loads(resource("schemas", "provenance.schema.json").read_bytes())).validate(provenance)
    assert provenance["upgrade"] == report["upgrade"]
    assert str(tmp_path) not in json.dumps(provenance)
    model = load(tmp_path / "out", target)
    assert set(model.norm.weight.tolist()) == {report["upgrade"]["feedback_gain"]}


def test_the_first_draft_is_unchanged_by_the_feedback(tmp_path: Path, target: Path, prompts: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting())

    upgrade(source, tmp_path / "out", target, prompts, "--no-fc-norm")

    before, after = logits(load(source, target)), logits(load(tmp_path / "out", target))
    torch.testing.assert_close(after[0], before[0], atol=1e-4, rtol=1e-4)
    assert not torch.allclose(after[1], before[1], atol=1e-3)


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "mla"])
def test_with_the_residual_after_the_norm_every_draft_is_unchanged(
    tmp_path: Path, target: Path, architecture: str
) -> None:
    source = write_drafter(tmp_path / "source", fitting(architecture, norm_before_residual=True))

    result = run("upgrade", source, tmp_path / "out", "--no-fc-norm", "--no-calibrate", "--json")

    assert validate(result)["upgrade"]["needs_training"] is False
    before = logits(load(source, target))
    upgraded = load(tmp_path / "out", target)
    ignoring = fitting(architecture, norm_before_residual=True, embedding=True)
    for model in (upgraded, DraftModel.load(ignoring, upgraded.state_dict())):
        for one, other in zip(before, logits(model), strict=True):
            torch.testing.assert_close(other, one, atol=1e-3, rtol=1e-3)


def test_folded_and_calibrated_norms_compute_the_same(tmp_path: Path, target: Path, prompts: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting())

    for init in ("calibrated", "folded"):
        upgrade(source, tmp_path / init, target, prompts, "--fc-init", init, "--no-norm-output")

    calibrated, folded = (load(tmp_path / init, target) for init in ("calibrated", "folded"))
    assert set(folded.fc_norm[0].weight.tolist()) == {1.0}
    for one, other in zip(logits(calibrated), logits(folded), strict=True):
        torch.testing.assert_close(other, one, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("init", ["calibrated", "folded", "ones"])
def test_a_norm_over_all_states_becomes_one_a_state(tmp_path: Path, target: Path, prompts: Path, init: str) -> None:
    source = write_drafter(tmp_path / "source", fitting(norm_before_fc=True))

    report = upgrade(source, tmp_path / "out", target, prompts, "--fc-init", init, "--no-norm-output")

    before, after = load(source, target), load(tmp_path / "out", target)
    assert (after.drafter.norm_before_fc, after.drafter.fc_norm) == (False, True)
    gains = torch.tensor(report["upgrade"]["aux_scales"]["gains"])
    weights = before.input_norm.weight.unflatten(0, (3, -1)) * gains[:, None]
    if init == "calibrated":
        for norm, wanted in zip(after.fc_norm, weights, strict=True):
            torch.testing.assert_close(norm.weight, wanted)
    elif init == "folded":
        torch.testing.assert_close(after.fc.weight, before.fc.weight * weights.flatten())
    assert report["upgrade"]["statements"] == [{"exact": False, "what": report["upgrade"]["statements"][0]["what"]}]


def test_an_absent_head_is_the_targets(tmp_path: Path, target: Path, prompts: Path) -> None:
    drafter = fitting(draft_vocab_size=512, head=False)
    source = write_drafter(tmp_path / "source", drafter, torch.bfloat16)

    report = upgrade(source, tmp_path / "out", target, prompts)

    assert report["upgrade"]["head_bytes_added"] == 512 * 64 * 2
    assert json.loads((tmp_path / "out" / "config.json").read_text())["draft_vocab_size"] == 512
    before, after = logits(load(source, target))[0], logits(load(tmp_path / "out", target))[0]
    assert before.shape == after.shape


def test_upgrading_twice_does_nothing(tmp_path: Path, target: Path, prompts: Path) -> None:
    upgrade(write_drafter(tmp_path / "source", fitting()), tmp_path / "out", target, prompts)

    result = run("upgrade", tmp_path / "out", tmp_path / "again", "--target", target)

    assert result.exit_code == 0
    assert "nothing to upgrade" in result.stdout
    assert not (tmp_path / "again").exists()


def test_the_second_half_of_an_upgrade_can_come_later(tmp_path: Path, target: Path, prompts: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting())
    upgrade(source, tmp_path / "half", target, prompts, "--no-norm-output")

    report = upgrade(tmp_path / "half", tmp_path / "whole", target, prompts)

    assert (report["upgrade"]["fc_norm"], report["upgrade"]["norm_output"]) == (False, True)
    assert load(tmp_path / "whole", target).drafter.fc_norm


def test_a_dry_run_runs_and_writes_nothing(tmp_path: Path, target: Path, prompts: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting())

    result = run("upgrade", source, "--target", target, "--prompts", prompts, "--dry-run", "--json")

    report = validate(result)
    assert report["status"] == "planned"
    assert report["features_bytes"] > 0
    assert report["upgrade"]["measured"] is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_without_a_target_run_it_says_what_is_missing(tmp_path: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting())

    result = run("upgrade", source, tmp_path / "out", "--no-calibrate")

    assert result.exit_code == 0
    assert "fine-tune it before it is served" in result.stdout


def test_what_validate_would_refuse_is_not_written(tmp_path: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting())
    (source / "README.md").write_text(f"Made with hf_{'a' * 34}.\n")

    result = run("upgrade", source, tmp_path / "out", "--no-calibrate")

    assert result.exit_code == 1
    assert "EH904" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_place_that_is_taken_is_told_before_the_target_runs(tmp_path: Path, target: Path, prompts: Path) -> None:
    source, out = (write_drafter(tmp_path / name, fitting()) for name in ("source", "out"))

    result = run("upgrade", source, out, "--target", target, "--prompts", prompts)

    assert result.exit_code == 2
    assert result.stderr == "error: out: the output folder is not empty (--force replaces it)\n"


def refused(result: Result, *words: str) -> None:
    assert result.exit_code == 3, result.stdout + result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in result.stderr


def test_a_parallel_drafter_is_refused(tmp_path: Path) -> None:
    built = build("p-eagle", tmp_path / "source")
    options = built.expected.options if built.expected else ()
    refused(run("upgrade", built.path, tmp_path / "out", "--no-calibrate", *options), "P-EAGLE")


def test_a_quantised_head_is_refused(tmp_path: Path, target: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting())
    tensors = load_file(source / "model.safetensors") | {"lm_head.weight_scale": torch.ones(1)}
    save_file(tensors, source / "model.safetensors")
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "fp8"}}))

    refused(run("upgrade", source, tmp_path / "out", "--no-calibrate"), "lm_head.weight is quantised")
    result = run("upgrade", source, tmp_path / "out", "--target", target, "--no-norm-output")
    refused(result, "quantised", "--no-calibrate")


@pytest.mark.parametrize("scales", ["one", "rows", "blocks"])
def test_eight_bit_weights_are_made_ordinary_when_asked(
    tmp_path: Path, target: Path, prompts: Path, scales: str
) -> None:
    plain = write_drafter(tmp_path / "plain", fitting(), torch.bfloat16)
    source = write_drafter(tmp_path / "source", fitting(), torch.bfloat16)
    shapes = {"one": (), "rows": (200, 1), "blocks": (2, 1)}
    tensors = load_file(source / "model.safetensors")
    factors = torch.full(shapes[scales], 2.0**-9)
    quantised = (tensors["lm_head.weight"].float() * 2**9).to(torch.float8_e4m3fn)
    save_file(tensors | {"lm_head.weight": quantised, "lm_head.weight_scale": factors}, source / "model.safetensors")
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "fp8"}}))

    upgrade(source, tmp_path / "out", target, prompts, "--dequantize", "--no-fc-norm")

    assert "quantization_config" not in json.loads((tmp_path / "out" / "config.json").read_text())
    before, after = logits(load(plain, target))[0], logits(load(tmp_path / "out", target))[0]
    assert (after - before).norm() < 0.05 * before.norm()


def test_a_drafter_without_low_rank_queries_is_refused(tmp_path: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting("mla"))
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | {"q_lora_rank": None}))

    refused(run("upgrade", source, tmp_path / "out", "--no-calibrate"), "q_")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2}, ["width 64", "32"]),
        ({"vocab_size": 600}, ["vocabulary of 512", "600"]),
        ({"num_hidden_layers": 3}, ["layer"]),
    ],
)
def test_a_target_that_does_not_fit_is_refused(
    tmp_path: Path, prompts: Path, changes: dict[str, int], words: list[str]
) -> None:
    source = write_drafter(tmp_path / "source", fitting())
    other = write_target(tmp_path / "other", **changes)

    result = run("upgrade", source, tmp_path / "out", "--target", other, "--prompts", prompts)

    refused(result, *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "words"), [("", ["no prompts"]), ('{"messages": [', ["JSON"]), ('{"nothing": 1}', ["none of the keys"])]
)
def test_bad_prompts_are_refused(tmp_path: Path, target: Path, text: str, words: list[str]) -> None:
    source = write_drafter(tmp_path / "source", fitting())
    file = tmp_path / "prompts.jsonl"
    file.write_text(text)

    refused(run("upgrade", source, tmp_path / "out", "--target", target, "--prompts", file), *words)


def test_a_gain_can_be_given(tmp_path: Path, target: Path, prompts: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting(), torch.bfloat16)

    report = upgrade(source, tmp_path / "out", target, prompts, "--feedback-gain", "20.01")

    assert report["upgrade"]["feedback_gain"] == 20.0  # what bfloat16 holds
    assert report["upgrade"]["gain_search"] is None


def test_the_target_is_asked_for(tmp_path: Path) -> None:
    source = write_drafter(tmp_path / "source", fitting())

    result = run("upgrade", source, tmp_path / "out")

    assert result.exit_code == 2
    assert "--target" in result.stderr
