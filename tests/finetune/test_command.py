"""`eaglehub finetune` on drafters of random weights: what is written, what stays as it was, what is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from jsonschema import Draft202012Validator
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from eaglehub.checkpoint import open_checkpoint
from eaglehub.drafter.target import read_target
from eaglehub.features import Source, Store, encode
from eaglehub.finetune.augment import training_samples
from eaglehub.finetune.sets import SETS
from eaglehub.prompts import Conversation, load_prompts
from eaglehub.resources import resource
from eaglehub.scoring.candidate import read_candidate
from eaglehub.scoring.load import load_model
from eaglehub.scoring.score import acceptance
from tests.models.tiny_target import fitting, write_drafter, write_target
from tests.reports import validate

from ..cli_runner import Result, run

if TYPE_CHECKING:
    from pathlib import Path

    from eaglehub.finetune.train import Trainer

QUICK = ("--max-tokens", "16", "--ignore-eos", "--json", "-K", "3", "--ttt-steps", "3", "--device", "cpu")
LEARN = ("--lr", "0.01", "--evaluate-every", "10", "--batch-tokens", "128")


@pytest.fixture
def finetune(target: Path, prompts: Path, features: Path) -> Any:
    def call(drafter: Path, out: Path, *options: str | Path) -> Result:
        given = ("--target", target, "--prompts", prompts, "--held-out", prompts, "--features", features)
        return run("finetune", drafter, out, *given, *QUICK, *options)

    return call


def changed(one: Path, other: Path) -> set[str]:
    """Names of tensors with other bits."""
    before, after = (load_file(folder / "model.safetensors") for folder in (one, other))
    assert set(before) == set(after)
    return {
        name
        for name in before
        if not torch.equal(before[name].contiguous().view(torch.uint8), after[name].contiguous().view(torch.uint8))
    }


def logged(out: Path) -> list[float]:
    """Losses of a run, step by step."""
    lines = out.with_name(f"{out.name}.finetune").joinpath("metrics.jsonl").read_text().splitlines()
    return [entry["loss"] for entry in map(json.loads, lines) if "loss" in entry]


@pytest.mark.parametrize(
    "architecture", ["llama", *(pytest.param(each, marks=pytest.mark.slow) for each in ("qwen3", "mla"))]
)
def test_a_better_drafter_is_written_with_all_else_as_it_was(
    tmp_path: Path, finetune: Any, drafters: dict[str, Path], architecture: str
) -> None:
    drafter = drafters[architecture]

    result = finetune(drafter, tmp_path / "out", *LEARN, "--max-steps", "30", "--trainable", "norms+fc")

    assert result.exit_code == 0, result.stderr
    report = validate(result)["finetune"]
    assert changed(drafter, tmp_path / "out") == set(report["tensors"])
    assert {"fc.weight", "norm.weight", "fc_norm.0.weight"} < set(report["tensors"])
    assert (
        report["after"]["every_position"]["acceptance_length"] > report["before"]["every_position"]["acceptance_length"]
    )
    assert report["curve"][0]["step"] == 0
    assert report["best_step"] == max(report["curve"], key=lambda each: each["acceptance_length"])["step"]
    provenance = json.loads((tmp_path / "out" / "eaglehub.json").read_text())
    Draft202012Validator(json.loads(resource("schemas", "provenance.schema.json").read_bytes())).validate(provenance)
    assert provenance["finetune"] == report
    assert str(tmp_path) not in json.dumps(provenance)
    assert run("validate", tmp_path / "out").exit_code == 0
    metrics = [json.loads(line) for line in (tmp_path / "out.finetune" / "metrics.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in metrics if "loss" in entry] == list(range(1, 31))
    assert sorted(file.name for file in (tmp_path / "out.finetune").iterdir()) == ["metrics.jsonl"]


@pytest.mark.slow
def test_how_it_is_computed_changes_little(tmp_path: Path, finetune: Any, drafters: dict[str, Path]) -> None:
    kinds = {
        "plain": (),
        "recompute": ("--recompute",),
        "bfloat16": ("--dtype", "bfloat16"),
        "anchor": ("--anchor", "1"),
    }

    for name, options in kinds.items():
        finetune(drafters["llama"], tmp_path / name, *LEARN, "--max-steps", "10", "--trainable", "all", *options)

    losses = {name: logged(tmp_path / name) for name in kinds}
    assert losses["recompute"] == losses["plain"]
    assert losses["bfloat16"] == pytest.approx(losses["plain"], rel=0.02)
    assert losses["anchor"][0] == losses["plain"][0]
    assert losses["anchor"][-1] > losses["plain"][-1]


@pytest.mark.slow
def test_all_weights_learn_a_few_answers_by_heart(
    tmp_path: Path, finetune: Any, drafters: dict[str, Path], target: Path, prompts: Path, features: Path
) -> None:
    out = tmp_path / "out"

    result = finetune(drafters["llama"], out, *LEARN, "--trainable", "all", "--max-steps", "150")

    assert result.exit_code == 0, result.stderr
    facts = read_target(target)
    source, tuned = Source(target=facts), read_candidate(open_checkpoint(out), facts)
    samples = encode(load_prompts(str(prompts)), source.tokenizer())
    store = Store(
        features, source.extraction(samples, facts.layer_ids_for(tuned.drafter), max_tokens=16, ignore_eos=True)
    )
    # What comes after an answer is not trained on.
    answers = [replace(each, tokens=each.tokens[: each.end], aux=each.aux[: each.end - 1]) for each in store]
    model = load_model(tuned.checkpoint, tuned.reading.tensors.values(), tuned.drafter, target)
    assert acceptance(model, answers, 3).acceptance_length == 4.0


def test_what_is_no_better_is_not_kept(tmp_path: Path, finetune: Any, drafters: dict[str, Path]) -> None:
    options = ("--lr", "1e-9", "--max-steps", "2", "--charts", tmp_path / "charts")

    result = finetune(drafters["llama"], tmp_path / "out", *options)

    assert result.exit_code == 1
    assert validate(result)["finetune"]["kept"] is False
    assert changed(drafters["llama"], tmp_path / "out") == set()
    assert (tmp_path / "charts" / "training.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("stopped_at", [5, pytest.param(14, marks=pytest.mark.slow)])
def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tmp_path: Path, finetune: Any, drafters: dict[str, Path], monkeypatch: pytest.MonkeyPatch, stopped_at: int
) -> None:
    options = (*LEARN, "--max-steps", "20", "--trainable", "all")
    whole = finetune(drafters["llama"], tmp_path / "whole", *options)
    from eaglehub.finetune import train

    step = train.Trainer._step

    def interrupted(self: Trainer, number: int, samples: Any) -> Any:
        if number == stopped_at:
            raise KeyboardInterrupt
        return step(self, number, samples)

    with monkeypatch.context() as patch:
        patch.setattr(train.Trainer, "_step", interrupted)
        first = finetune(drafters["llama"], tmp_path / "out", *options)
    again = finetune(drafters["llama"], tmp_path / "out", *options)

    assert first.exit_code == 130
    assert "goes on from the last checkpoint" in first.stderr
    assert (again.exit_code, changed(tmp_path / "whole", tmp_path / "out")) == (whole.exit_code, set())
    assert again.json()["finetune"] == whole.json()["finetune"]
    assert logged(tmp_path / "out") == logged(tmp_path / "whole")


def test_an_unfinished_run_with_other_settings_is_not_taken_up(
    tmp_path: Path, finetune: Any, drafters: dict[str, Path]
) -> None:
    work = tmp_path / "out.finetune"
    work.mkdir()
    (work / "run.json").write_text("{}")
    (work / "checkpoint.pt").write_bytes(b"")

    result = finetune(drafters["llama"], tmp_path / "out", "--max-steps", "2")

    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "unfinished run" in result.stderr


@pytest.mark.parametrize("times", [1, 2])
def test_a_loss_that_is_not_finite_is_tried_again_once(
    tmp_path: Path, finetune: Any, drafters: dict[str, Path], monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    from eaglehub.finetune import train

    forward, left = train.Objective.forward, [times]

    def broken(self: Any, batch: Any) -> Any:
        loss, right = forward(self, batch)
        left[0] -= 1
        return (loss * float("nan") if left[0] in range(times) else loss), right

    monkeypatch.setattr(train.Objective, "forward", broken)

    result = finetune(drafters["llama"], tmp_path / "out", *LEARN, "--max-steps", "3", "--trainable", "norms+fc")

    if times == 1:
        assert result.exit_code in (0, 1), result.stderr
    else:
        assert result.exit_code == 3
        assert "the loss is not finite at step 1" in result.stderr
        assert not (tmp_path / "out").exists()


def test_changed_conversations_are_answered_and_trained_on(
    tmp_path: Path, finetune: Any, drafters: dict[str, Path]
) -> None:
    answered = tmp_path / "answered.jsonl"
    turns = [{"role": "user", "content": "Where does the fox go?"}, {"role": "assistant", "content": "To the mill."}]
    answered.write_text("\n".join(json.dumps({"messages": turns}) for _ in range(16)))

    result = finetune(
        drafters["llama"], tmp_path / "out", "--prompts", answered, "--max-steps", "2", "--context-tokens", "20",
        "--augment", "templates,system-prompts,long-context",
    )  # fmt: skip

    data = validate(result)["finetune"]["data"]
    assert data["augment"] == ["templates", "system-prompts", "long-context"]
    assert data["longest_tokens"] > 60


def test_all_answers_of_a_conversation_are_learnt_from(target: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(target)
    texts = ("Where does the fox go?", "To the mill.", "And then?", "Home.")
    turns = tuple({"role": ("user", "assistant")[number % 2], "content": each} for number, each in enumerate(texts))

    def learnt(*kinds: str, regenerate: bool = False) -> list[list[str]]:
        samples = training_samples(
            [Conversation(turns)] * 16, kinds, tokenizer, context_tokens=20, regenerate=regenerate
        )
        return [[tokenizer.decode(each.prompt[start:end]) for start, end in each.earlier] for each in samples]

    assert learnt() == [["To the mill.<|end|>"]] * 16
    assert learnt(regenerate=True) == [[]] * 16
    # One conversation is a context, and the next one's last question is asked in it.
    assert ["To the mill.<|end|>", "Home.<|end|>", "To the mill.<|end|>"] in learnt("long-context")


def refusal(result: Result) -> str:
    """The one line that says why."""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("16 conv")]
    assert len([line for line in lines if line.startswith("error: ")]) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return lines[-1]


def test_bad_input_is_refused_in_one_line(
    tmp_path: Path, finetune: Any, drafters: dict[str, Path], target: Path
) -> None:
    plain = write_drafter(tmp_path / "plain", fitting())
    short = write_target(tmp_path / "short", max_position_embeddings=16)
    few = write_drafter(tmp_path / "few", fitting(max_position_embeddings=16))
    wider = write_target(tmp_path / "wider", hidden_size=96)
    larger = write_target(tmp_path / "larger", vocab_size=600)
    single = tmp_path / "single.jsonl"
    single.write_text('{"messages": [{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": ""}]}\n' * 2)
    full = tmp_path / "full"
    shutil.copytree(plain, full)
    cases = [
        (2, "no fc_norm", (plain, tmp_path / "out", "--trainable", "fc-norm")),
        (3, "16 positions", (few, tmp_path / "out", "--target", short)),
        (3, "width 64", (plain, tmp_path / "out", "--target", wider)),
        (3, "vocab", (plain, tmp_path / "out", "--target", larger)),
        (2, "not empty", (plain, full)),
        (2, "does not exist", (plain, tmp_path / "absent" / "out")),
        (2, "the source", (plain, plain, "--force")),
        (3, "long enough to learn from", (plain, tmp_path / "out", "--prompts", single)),
        (4, "no device", (plain, tmp_path / "out", "--device", "tpu9")),
        (2, "none of", (plain, tmp_path / "out", "--augment", "noise")),
    ]  # fmt: skip

    for code, words, arguments in cases:
        result = finetune(*arguments)
        assert (result.exit_code, words in result.stderr) == (code, True), (words, result.stderr)
        assert "Traceback" not in result.stderr
        assert not (tmp_path / "out").exists()
    assert changed(plain, full) == set()


def test_what_has_no_row_in_the_draft_vocabulary_is_not_learned_from(tmp_path: Path, finetune: Any) -> None:
    """Every target id of the map is one that the target never says."""
    drafter = write_drafter(tmp_path / "drafter", fitting(draft_vocab_size=2))
    tensors = load_file(drafter / "model.safetensors")
    tensors["d2t"] = torch.tensor([508, 508])
    save_file(tensors, drafter / "model.safetensors")

    result = finetune(drafter, tmp_path / "out", "--max-steps", "2")

    assert result.exit_code == 3, result.stderr
    assert "draft vocabulary" in result.stderr


def test_every_set_is_an_option() -> None:
    assert all(name in run("finetune", "--help").stdout for name in SETS)
