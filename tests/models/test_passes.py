"""The two passes of the reference drafter are one: an engine's decoding, and all positions at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from .build import describe, random_inputs, random_model

DEPTH = 4
KINDS: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen3": {"architecture": "qwen3"},
    "mla": {"architecture": "mla"},
    "two layers": {"num_hidden_layers": 2},
    "mla of two layers": {"architecture": "mla", "num_hidden_layers": 2},
    "EAGLE 3.1": {"fc_norm": True, "norm_output": True},
    "input norm": {"norm_before_fc": True},
    "residual after norm": {"norm_before_residual": True},
    "both norms before fc": {"norm_before_fc": True, "fc_norm": True},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "qwen3 biases": {"architecture": "qwen3", "attention_bias": True},
    "five aux states": {"num_aux_hidden_states": 5},
    "no aux states": {"num_aux_hidden_states": 0},
    "narrower target": {"target_hidden_size": 40},
    "full vocabulary": {"draft_vocab_size": 160},
    "yarn": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_unrolling_equals_decoding_at_every_slot(kind: str) -> None:
    model = random_model(describe(**KINDS[kind]))
    aux, tokens = random_inputs(model.drafter, 9, DEPTH)

    with torch.inference_mode():
        for slot in (0, 4, 8):
            context = slice(0, slot + 1)
            drafted = list(model.draft(aux[:, context], tokens[:, context], DEPTH))
            chain = torch.cat([model.target_ids(step.logits.argmax(-1)) for step in drafted], dim=1)
            followed = torch.cat([tokens[:, context], chain], dim=1)
            padded = torch.nn.functional.pad(followed, (0, 9 - followed.shape[1] + DEPTH))
            unrolled = list(model.unroll(aux, padded, DEPTH))
            for one, all_at_once in zip(drafted, unrolled, strict=True):
                for alone, among in zip(one, all_at_once, strict=True):
                    torch.testing.assert_close(alone[:, 0], among[:, slot], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["llama", "mla", "two layers"])
def test_a_part_of_the_slots_is_as_in_the_whole(kind: str) -> None:
    model = random_model(describe(**KINDS[kind]))
    aux, tokens = random_inputs(model.drafter, 300, DEPTH, batch=1)

    with torch.inference_mode():
        whole = list(model.unroll(aux, tokens, DEPTH))
        part = list(model.unroll(aux, tokens, DEPTH, slots=range(250, 290)))

    for one, other in zip(whole, part, strict=True):
        torch.testing.assert_close(one.logits[:, 250:290], other.logits, atol=2e-5, rtol=1e-4)


def test_every_weight_gets_a_gradient_from_an_unroll() -> None:
    model = random_model(describe(fc_norm=True, norm_output=True))
    aux, tokens = random_inputs(model.drafter, 9, DEPTH)

    sum(step.logits.square().mean() for step in model.unroll(aux, tokens, DEPTH)).backward()

    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_what_is_seen_of_the_attention_adds_up() -> None:
    model = random_model(describe())
    aux, tokens = random_inputs(model.drafter, 9, DEPTH)
    seen = []

    with torch.inference_mode():
        list(model.unroll(aux, tokens, DEPTH, slots=range(3, 9), watch=seen.append))

    assert [each.depth for each in seen] == [0, 1, 2, 3]
    assert [each.first_slot for each in seen] == [0, 3, 3, 3]
    for each in seen:
        torch.testing.assert_close(each.probabilities.sum(-1), torch.ones(each.probabilities.shape[:-1]))
        assert each.probabilities.shape[-1] == each.context + each.depth
