"""Target features: the right states, stored whole, resumed where it stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
)

from eaglehub.drafter.shared import EMBEDDING, HEAD, find_shared, open_target
from eaglehub.drafter.target import read_target
from eaglehub.errors import EnvironmentProblem, UnusableInput
from eaglehub.features import Condition, Extraction, Features, Sample, Source, encode, extract
from eaglehub.features.choices import fill_choices, read_choices
from eaglehub.features.target import TransformersTarget
from eaglehub.prompts import Conversation, load_prompts
from tests.models.tiny_target import LAYERS, write_prompts, write_target

if TYPE_CHECKING:
    from pathlib import Path

IDS = (0, 2, LAYERS)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = write_target(tmp_path_factory.mktemp("features") / "target")
    return Source(target=read_target(folder))


@pytest.fixture(scope="module")
def extraction(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Extraction:
    """Ten prompts, so two shards."""
    file = write_prompts(tmp_path_factory.mktemp("features") / "prompts.jsonl", 10)
    samples = encode(load_prompts(str(file)), source.tokenizer())
    return source.extraction(samples, IDS, max_tokens=6, ignore_eos=True)


@pytest.fixture(scope="module")
def features(source: Source, extraction: Extraction, tmp_path_factory: pytest.TempPathFactory) -> list[Features]:
    (store,) = extract(source, [extraction], tmp_path_factory.mktemp("store"))
    return list(store)


def test_states_are_those_of_the_target(source: Source, features: list[Features]) -> None:
    model = AutoModelForCausalLM.from_pretrained(source.folder, dtype=torch.float32).eval()
    for each in features[:3]:
        with torch.inference_mode():
            seen = model(each.tokens[None, :-1], output_hidden_states=True)
        embedded, second, last = each.aux.chunk(3, dim=-1)
        torch.testing.assert_close(embedded, seen.hidden_states[0][0])
        torch.testing.assert_close(second, seen.hidden_states[2][0])
        # The last of transformers' hidden states is after the final norm; ours is before it.
        torch.testing.assert_close(each.head_input, seen.hidden_states[-1][0])
        torch.testing.assert_close(model.model.norm(last), each.head_input)
        assert not torch.allclose(last, each.head_input)


def test_answers_are_greedy(source: Source, extraction: Extraction, features: list[Features]) -> None:
    model = AutoModelForCausalLM.from_pretrained(source.folder, dtype=torch.float32).eval()
    for sample, each in zip(extraction.samples, features, strict=True):
        with torch.inference_mode():
            chosen = model(each.tokens[None]).logits[0].argmax(-1)
        assert each.tokens[: each.prompt_length].tolist() == list(sample.prompt)
        assert each.tokens[each.prompt_length :].tolist() == chosen[each.prompt_length - 1 : -1].tolist()
        assert each.end == each.prompt_length + extraction.max_tokens
        assert len(each.tokens) == each.end + extraction.lookahead


def test_a_language_model_inside_another_is_found(tmp_path: Path) -> None:
    text = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
        tie_word_embeddings=False,
    )  # fmt: skip
    # A vision tower with more layers than the language model has.
    vision = CLIPVisionConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=4, num_attention_heads=2, image_size=8, patch_size=4
    )
    model = LlavaForConditionalGeneration(LlavaConfig(text_config=text, vision_config=vision, image_token_index=63))
    model.save_pretrained(tmp_path)
    target = TransformersTarget(tmp_path, "float32")

    aux, head_input = target.states([1, 2, 3, 4], (0, 3))

    language = model.eval().get_decoder()
    with torch.inference_mode():
        seen = language(torch.tensor([[1, 2, 3, 4]]), output_hidden_states=True)
    torch.testing.assert_close(aux[:, :32], seen.hidden_states[0][0])
    torch.testing.assert_close(language.norm(aux[:, 32:]), head_input)
    weights = open_target(tmp_path)
    assert find_shared(weights, EMBEDDING) == "language_model.model.embed_tokens.weight"
    assert find_shared(weights, HEAD) == "language_model.lm_head.weight"
    assert read_target(tmp_path).hidden_size == 32


def test_an_interrupted_extraction_resumes_to_the_same_bytes(
    source: Source, extraction: Extraction, tmp_path: Path
) -> None:
    (whole,) = extract(source, [extraction], tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        extract(source, [extraction], tmp_path / "broken", progress=_interrupt)
    (leftover,) = (tmp_path / "broken").iterdir()
    assert len(list(leftover.iterdir())) == 1

    (resumed,) = extract(source, [extraction], tmp_path / "broken")

    names = sorted(path.name for path in whole.folder.iterdir())
    assert names == sorted(path.name for path in resumed.folder.iterdir())
    for name in names:
        assert (whole.folder / name).read_bytes() == (resumed.folder / name).read_bytes()


def test_finished_features_are_found_again(
    source: Source, extraction: Extraction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extract(source, [extraction], tmp_path)
    monkeypatch.setattr("eaglehub.features.target.TransformersTarget", _not_again)
    extract(source, [extraction], tmp_path)


def test_what_features_depend_on_tells_stores_apart(source: Source, extraction: Extraction) -> None:
    others: list[dict[str, Any]] = [
        {"layer_ids": (0, 2, 4)},
        {"dtype": "bfloat16"},
        {"max_tokens": 7},
        {"samples": extraction.samples[:-1]},
        {"target": "0"},
        {"stop_ids": (0,)},
    ]
    digests = {replace(extraction, **change).digest for change in others}
    assert len(digests | {extraction.digest}) == len(others) + 1


def test_given_answers_are_kept_unless_regenerated(source: Source, tmp_path: Path) -> None:
    file = tmp_path / "answered.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b c"}]}')
    tokenizer = source.tokenizer()

    (kept,) = encode(load_prompts(str(file)), tokenizer, regenerate=False)
    (asked,) = encode(load_prompts(str(file)), tokenizer)

    assert tokenizer.decode(kept.answer) == "b c<|end|>"
    assert (asked.prompt, asked.answer) == (kept.prompt, None)


def test_earlier_answers_are_found_as_the_target_would_have_given_them(source: Source) -> None:
    texts = ("a question", "an answer", "one more", "and another", "the last")
    turns = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]
    conversation = Conversation(tuple(turns))
    tokenizer = source.tokenizer()

    (sample,) = encode([conversation], tokenizer, earlier=True)
    found = [tokenizer.decode(sample.prompt[start:end]) for start, end in sample.earlier]
    assert found == ["an answer<|end|>", "and another<|end|>"]
    assert encode([conversation], tokenizer)[0].earlier == ()

    # As templates do that leave the chain of thought out of all answers but the last.
    tokenizer.chat_template = tokenizer.chat_template.replace(
        "{{ message['content'] }}", "{% if loop.last %}thought {% endif %}{{ message['content'] }}"
    )
    assert encode([conversation], tokenizer, earlier=True)[0].earlier == ()


def test_choices_are_known_in_every_answer(source: Source, tmp_path: Path) -> None:
    prompt = encode(load_prompts(str(write_prompts(tmp_path / "prompts.jsonl", 1))), source.tokenizer())[0].prompt
    extraction = source.extraction([Sample(prompt, prompt[:4], ((2, 5),))], IDS, max_tokens=6)
    (store,) = extract(source, [extraction], tmp_path)
    weights = open_target(source.folder)
    fill_choices(store, torch.from_numpy(weights.read(find_shared(weights, HEAD))).float())

    model = AutoModelForCausalLM.from_pretrained(source.folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        said = model(store.read(0).tokens[None, :-1]).logits[0].argmax(-1)
    choices, length = read_choices(store, 0), len(prompt)
    assert store.spans()[0].earlier == store.read(0).earlier == ((2, 5),)
    assert choices.tolist() == [*[-1], *said[1:5].tolist(), *[-1] * (length - 6), *said[length - 1 :].tolist()]


def test_conditions_differ_where_the_tokenizer_can_tell(source: Source, tmp_path: Path) -> None:
    file = write_prompts(tmp_path / "prompts.jsonl", 1)
    tokenizer = source.tokenizer()
    tokenizer.bos_token = "<|user|>"

    prompts = {each: encode(load_prompts(str(file)), tokenizer, each)[0].prompt for each in Condition}

    bos = tokenizer.bos_token_id
    assert prompts[Condition.NO_BOS] == prompts[Condition.SERVED][1:]
    assert prompts[Condition.NO_TEMPLATE] == (bos, *prompts[Condition.NEITHER])
    assert bos not in prompts[Condition.NEITHER]


def test_an_answer_ends_at_a_stop_token(source: Source, extraction: Extraction, tmp_path: Path) -> None:
    (store,) = extract(source, [extraction], tmp_path)
    start = len(extraction.samples[0].prompt)
    tokens = next(iter(store)).tokens.tolist()
    stopping = replace(extraction, stop_ids=(tokens[start + 2],))
    (stopped,) = extract(source, [stopping], tmp_path)

    first = tokens[start:].index(tokens[start + 2])
    assert next(iter(stopped)).end == start + first + 1


def test_a_full_disk_is_noticed_before_the_target_runs(
    source: Source, extraction: Extraction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        free = extraction.nbytes // 2

    monkeypatch.setattr("shutil.disk_usage", lambda _: Full)
    monkeypatch.setattr("eaglehub.features.target.TransformersTarget", _not_again)
    with pytest.raises(EnvironmentProblem, match=r"need up to .* are free"):
        extract(source, [extraction], tmp_path)


def test_a_layer_beyond_the_target_is_refused(source: Source, extraction: Extraction) -> None:
    with pytest.raises(UnusableInput, match=f"enters layer {LAYERS + 1}"):
        source.extraction(extraction.samples, (1, 2, LAYERS + 1), max_tokens=4)


def test_a_damaged_shard_is_named(source: Source, extraction: Extraction, tmp_path: Path) -> None:
    (store,) = extract(source, [extraction], tmp_path)
    file = store.folder / "shard-00001.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(UnusableInput, match="shard-00001"):
        list(store)


def _interrupt(_: int) -> None:
    raise KeyboardInterrupt


def _not_again(*_: Any, **__: Any) -> Any:
    raise AssertionError("the target was loaded")
