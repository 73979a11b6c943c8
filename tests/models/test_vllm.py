"""The reference drafter against a real vLLM: the same drafted tokens, and the same counters along the same walk.

`verify` holds the trained fixtures to it as they are; here they are upgraded ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import torch

from eaglehub.checkpoint import open_checkpoint
from eaglehub.drafter.target import read_target
from eaglehub.features import Features, Source, Store, encode, extract
from eaglehub.prompts import load_prompts
from eaglehub.scoring.candidate import read_candidate
from eaglehub.scoring.load import load_model
from eaglehub.scoring.score import answer_slots, judge, score
from tests.cli_runner import run
from tests.tiny import KINDS
from tests.vllm_runs.process import serve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from eaglehub.drafter.model import DraftModel
    from tests.vllm_runs.process import Served

    Tiny = Callable[[str], Path]

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("vllm")]

DEPTH, NOTED, TIMEOUT_S = 5, 2, 900


@dataclass(frozen=True)
class Case:
    """A drafter with its target and prompts."""

    target: Path
    drafter: Path
    prompts: Path
    count: int
    max_tokens: int


def case_of(folder: Path) -> Case:
    return Case(folder / "target", folder / "drafter", folder / "prompts.jsonl", 6, 48)


def states(case: Case, root: Path) -> Store:
    source = Source(target=read_target(case.target))
    samples = encode(load_prompts(str(case.prompts), case.count), source.tokenizer())
    ids = source.target.layer_ids_for(read_candidate(open_checkpoint(case.drafter), source.target).drafter)
    (store,) = extract(source, [source.extraction(samples, ids, max_tokens=case.max_tokens, ignore_eos=True)], root)
    return store


def model_of(case: Case) -> DraftModel:
    candidate = read_candidate(open_checkpoint(case.drafter), read_target(case.target))
    return load_model(candidate.checkpoint, candidate.reading.tensors.values(), candidate.drafter, case.target)


def served_by_vllm(case: Case, store: Store, folder: Path) -> Served:
    latent = json.loads((case.target / "config.json").read_text())["model_type"].startswith("deepseek")
    return serve(
        case.target,
        case.drafter,
        [list(sample.prompt) for sample in store.extraction.samples],
        folder,
        max_tokens=case.max_tokens,
        draft_tokens=DEPTH,
        timeout_s=TIMEOUT_S,
        noted=NOTED,
        ignore_eos=True,
        engine={"block_size": 16} if latent else {},
    )


def drafts(model: DraftModel, features: Features) -> list[list[int]]:
    """Every draft along the walk, decoded step by step as an engine does."""
    slots, found = answer_slots(features, DEPTH), []
    kept = judge(model, features, DEPTH).cumprod(axis=1).sum(axis=1)
    slot = slots.start
    with torch.inference_mode():
        while slot < slots.stop:
            aux, tokens = features.aux[None, : slot + 1], features.tokens[None, 1 : slot + 2]
            steps = model.draft(aux, tokens, DEPTH)
            found.append([int(model.target_ids(step.logits.argmax(-1))) for step in steps])
            slot += int(kept[slot - slots.start]) + 1
    return found


def compare(case: Case, root: Path, tmp_path: Path) -> None:
    store, model = states(case, root), model_of(case)
    served = served_by_vllm(case, store, tmp_path)
    for features, noted in zip(store, served.noted, strict=False):
        answer = features.tokens[features.prompt_length : features.prompt_length + case.max_tokens]
        assert answer.tolist() == noted["tokens"]
        expected = drafts(model, features)
        # The engine may draft once more after the last token.
        assert noted["drafts"][: len(expected)] == expected
    walk = score(model, store, DEPTH).walk
    length = 1 + sum(served.accepted) / served.drafts
    assert walk.acceptance_length == pytest.approx(length, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_upgraded_fixtures(tiny: Tiny, tmp_path: Path, kind: str) -> None:
    case = case_of(tiny(kind))
    out = tmp_path / "upgraded"
    result = run(
        "upgrade", case.drafter, out, "--target", case.target, "--prompts", case.prompts,
        "--max-tokens", "48", "--features", tmp_path, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert result.json()["upgrade"]["ratio"]["value"] > 0.9
    compare(Case(case.target, out, case.prompts, case.count, case.max_tokens), tmp_path, tmp_path)


def test_the_real_drafter(shared: Path, real_target: Path, cache_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "converted"
    result = run("convert", shared / "drafters" / "smollm2-eagle3-specforge", out, "--target", real_target)
    assert result.exit_code == 0, result.stderr
    compare(Case(real_target, out, shared / "data" / "smollm2-fresh.jsonl", 24, 96), cache_folder, tmp_path)


def test_states_from_vllm_are_those_from_transformers(tiny: Tiny, tmp_path: Path) -> None:
    case = case_of(tiny("llama"))
    target = read_target(case.target)
    found = []
    for engine in ("transformers", "vllm"):
        source = Source(target=target, engine=engine)
        samples = encode(load_prompts(str(case.prompts), 4), source.tokenizer())
        extraction = source.extraction(samples, (1, 2, 3), max_tokens=16, ignore_eos=True)
        found.append(extract(source, [extraction], tmp_path)[0])
    for one, other in zip(*found, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert (one.prompt_length, one.end) == (other.prompt_length, other.end)
        torch.testing.assert_close(one.aux, other.aux, atol=1e-3, rtol=1e-3)
        torch.testing.assert_close(one.head_input, other.head_input, atol=1e-3, rtol=1e-3)
