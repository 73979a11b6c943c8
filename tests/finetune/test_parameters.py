"""What is trained, in which terms, and that nothing else moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from eaglehub.errors import UsageProblem
from eaglehub.finetune.parameters import head_gains, prepare_training, raw_parameters, trained_weights
from eaglehub.finetune.sets import SETS, trained_names
from tests.models.build import describe, random_model

if TYPE_CHECKING:
    from eaglehub.drafter.model import DraftModel

SECOND = [f"layers.1.{name}.weight" for name in ("input_layernorm", "post_attention_layernorm")]
NORMS = ["norm.weight"] + [
    f"layers.0.{name}.weight" for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm")
]
FC_NORMS = [f"fc_norm.{chunk}.weight" for chunk in range(3)]
UPGRADED: dict[str, Any] = {"fc_norm": True, "norm_output": True}


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("fc-norm", UPGRADED, FC_NORMS),
        ("norms", UPGRADED, FC_NORMS + NORMS),
        ("norms", {}, NORMS),
        ("norms", {"architecture": "qwen3"}, NORMS),
        ("norms", {"architecture": "mla"}, NORMS),
        ("norms+fc", UPGRADED, [*FC_NORMS, *NORMS, "fc.weight"]),
        ("norms", {"num_hidden_layers": 2}, NORMS + SECOND),
    ],
)  # fmt: skip
def test_a_set_is_what_its_name_says(name: str, changes: dict[str, Any], expected: list[str]) -> None:
    assert sorted(trained_names(describe(**changes), name)) == sorted(expected)


def test_all_is_all_that_is_the_drafters_own() -> None:
    names = set(trained_names(describe(architecture="qwen3", attention_bias=True), "all"))
    assert "embed_tokens.weight" not in names
    assert "d2t" not in names
    assert {
        "lm_head.weight",
        "fc.weight",
        "layers.0.self_attn.q_norm.weight",
        "layers.0.self_attn.q_proj.bias",
    } <= names
    assert "lm_head.weight" not in trained_names(describe(head=False, draft_vocab_size=160), "all")


def test_without_fc_norm_there_is_none_to_train() -> None:
    with pytest.raises(UsageProblem, match="no fc_norm"):
        trained_names(describe(), "fc-norm")


def prepared(name: str, **changes: Any) -> tuple[DraftModel, DraftModel, list[str]]:
    drafter = describe(**changes)
    model, start = random_model(drafter), random_model(drafter)
    names = trained_names(drafter, name)
    prepare_training(model, names, torch.randn(drafter.draft_vocab_size, drafter.target_hidden_size))
    return model, start, names


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("architecture", ["llama", "qwen3", "mla"])
def test_the_terms_change_nothing_until_a_step_and_then_only_what_is_trained(name: str, architecture: str) -> None:
    model, start, names = prepared(name, architecture=architecture, **UPGRADED)
    before = start.state_dict()

    for each, tensor in trained_weights(model, names).items():
        torch.testing.assert_close(tensor, before[each], rtol=1e-6, atol=0)
    optimizer = torch.optim.SGD([parameter for _, parameter, _ in raw_parameters(model)], 0.1)
    loss = sum(
        getattr(model.get_submodule(each.rpartition(".")[0]), each.rpartition(".")[2]).square().sum() for each in names
    )
    loss.backward()
    optimizer.step()

    after = trained_weights(model, names)
    assert all(not torch.equal(after[each], before[each]) for each in names)
    kept = {each: tensor for each, tensor in model.state_dict().items() if each in before and each not in names}
    assert all(torch.equal(tensor, before[each]) for each, tensor in kept.items())
    assert {*kept, *names} == set(before)


def test_a_folded_gain_is_found_again() -> None:
    drafter = describe(**UPGRADED)
    model = random_model(drafter)
    head, gain, constant = torch.randn(48, 64), 0.5 + torch.rand(64), 20.0
    with torch.no_grad():
        model.lm_head.weight.copy_(head * gain / constant)
        model.norm.weight.fill_(constant)

    torch.testing.assert_close(head_gains(model, head), gain, rtol=1e-4, atol=1e-5)


def test_an_unfolded_head_is_as_large_as_the_targets() -> None:
    """Whatever the upgrade's constant is, so that a rate that suits one suits all."""
    drafter = describe(**UPGRADED)
    sizes = []
    for constant in (1.0, 30.0):
        model = random_model(drafter)
        head = torch.randn(48, 64)
        with torch.no_grad():
            model.lm_head.weight.copy_(head / constant)
            model.norm.weight.fill_(constant)
        prepare_training(model, trained_names(drafter, "all"), head)
        raw = {name: parameter for name, parameter, _ in raw_parameters(model)}
        sizes.append(float(raw["lm_head.parametrizations.weight.original"].detach().square().mean()))
    assert sizes[0] == pytest.approx(sizes[1], rel=0.1)


def test_fc_is_trained_as_if_its_inputs_were_of_one_size() -> None:
    model = random_model(describe(**UPGRADED))
    with torch.no_grad():
        for norm, size in zip(model.fc_norm, (1.0, 10.0, 100.0), strict=True):
            norm.weight.fill_(size)
    before = model.fc.weight.detach().clone()

    prepare_training(model, trained_names(model.drafter, "norms+fc"), torch.randn(48, 64))

    torch.testing.assert_close(model.fc.weight.detach(), before, rtol=1e-6, atol=0)
    trained = model.fc.parametrizations.weight.original.detach()
    read = [chunk.square().mean().sqrt() for chunk in (trained / before).chunk(3, dim=1)]
    assert [float(each / read[0]) for each in read] == pytest.approx([1, 10, 100], rel=1e-5)
