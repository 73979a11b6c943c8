"""The loss against its formula written out, and gradients of a whole unroll against finite differences."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from eaglehub.drafter.memory import Packing
from eaglehub.finetune import loss as loss_module
from eaglehub.finetune.batches import Batch
from eaglehub.finetune.loss import Judged, TargetHead, soft_cross_entropy
from eaglehub.finetune.parameters import prepare_training, raw_parameters
from eaglehub.finetune.sets import trained_names
from eaglehub.finetune.train import Objective
from tests.models.build import describe, random_model

STEPS, SLOTS, JUDGED, HIDDEN, VOCAB = 3, 7, 5, 16, 40


def random_case(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, TargetHead, Judged]:
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    rows = torch.stack([torch.randperm(SLOTS, generator=generator)[:JUDGED] + step * SLOTS for step in range(STEPS)])
    weights = torch.rand(STEPS, JUDGED, generator=generator, dtype=dtype)
    weights[1, 2] = 0
    judged = Judged(random(JUDGED, 24), rows, weights)
    return random(STEPS * SLOTS, HIDDEN), random(VOCAB, HIDDEN), TargetHead(random(VOCAB, 24)), judged


def written_out(states: Tensor, head: Tensor, target_head: TargetHead, judged: Judged) -> Tensor:
    wanted = (judged.target @ target_head.rows.T).softmax(-1)
    total = torch.zeros((), dtype=states.dtype)
    for step in range(STEPS):
        logits = (states @ head.T)[judged.rows[step]]
        total = total + (judged.weights[step] * functional.cross_entropy(logits, wanted, reduction="none")).sum()
    return total


@pytest.mark.parametrize("chunk", [1, 2 * VOCAB, 1 << 20])
def test_it_is_the_formula_in_chunks_of_any_size(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(loss_module, "_SCORES", chunk)
    states, head, target_head, judged = random_case()
    expected, got = ([each.clone().requires_grad_() for each in (states, head)] for _ in range(2))

    right = written_out(*expected, target_head, judged)
    result = soft_cross_entropy(*got, target_head, judged)
    for loss in (right, result.loss):
        (loss * 0.3).backward()

    torch.testing.assert_close(result.loss, right)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    wanted = (judged.target @ target_head.rows.T).argmax(-1)
    chosen = (states @ head.T).argmax(-1)[judged.rows]
    assert result.right.tolist() == ((chosen == wanted) & (judged.weights > 0)).sum(1).tolist()


def test_a_softcap_bends_the_targets_logits() -> None:
    _, _, target_head, judged = random_case()
    capped = TargetHead(target_head.rows, 2.0)

    expected = (2 * torch.tanh(judged.target @ target_head.rows.T / 2)).softmax(-1)

    torch.testing.assert_close(capped.distribution(judged.target), expected)


KINDS: dict[str, dict[str, Any]] = {
    "llama": {},
    "EAGLE 3.1": {"fc_norm": True, "norm_output": True},
    "qwen3": {"architecture": "qwen3", "norm_output": True},
    "mla": {"architecture": "mla", "fc_norm": True, "norm_output": True},
    "residual after norm": {"norm_before_residual": True, "norm_before_fc": True},
    "two layers": {"num_hidden_layers": 2},
}


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_an_unroll_agree_with_finite_differences(kind: str) -> None:
    drafter = describe(hidden_size=32, target_hidden_size=32, intermediate_size=24, **KINDS[kind])
    model = random_model(drafter).double()
    generator = torch.Generator().manual_seed(2)
    packing = Packing((6, 4), ((range(2, 4), range(4, 6)), (range(1, 4),)))
    rows = torch.stack([torch.arange(5) + step * 7 for step in range(2)])
    judged = Judged(
        torch.randn(5, 32, generator=generator).double(), rows, torch.rand(2, 5, generator=generator).double()
    )
    aux = torch.randn(1, 10, 96, generator=generator).double()
    tokens = torch.randint(drafter.vocab_size, (1, 11), generator=generator)
    head = TargetHead(torch.randn(drafter.draft_vocab_size, 32, generator=generator).double())
    prepare_training(model, trained_names(drafter, "all"), head.rows)
    objective, batch = Objective(model, head, 2), Batch(aux, tokens, packing, judged)

    objective(batch).loss.backward()

    for name, parameter, _ in raw_parameters(model):
        direction = torch.randn(parameter.shape, generator=generator).double()
        analytic = float((parameter.grad * direction).sum())
        losses = []
        for step in (1e-6, -1e-6):
            with torch.no_grad():
                parameter += step * direction
                losses.append(float(objective(batch).loss))
                parameter -= step * direction
        assert analytic == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=2e-4, abs=1e-6), name
