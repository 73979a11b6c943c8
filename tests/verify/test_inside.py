"""Looking inside the drafter, with modules and a model runner that stand for vLLM's."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402
from torch import nn  # noqa: E402

from eaglehub.verify.inside import Inside  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

PROMPT = [5, 6, 7]


class Packed(nn.Module):
    """A linear layer as a CPU build leaves it: without its weight, which the kernel has."""

    def __init__(self, whole: Any, sizes: list[int] | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(0))
        self.input_size = whole.shape[1]
        self.quant_method = SimpleNamespace(apply=lambda _layer, states, _bias: states @ whole.T)
        if sizes:
            self.output_sizes = sizes


class Layer(nn.Module):
    def forward(self, positions: Any, hidden_states: Any, residual: Any = None) -> Any:
        return hidden_states, hidden_states if residual is None else residual + 1


class Target(nn.Module):
    """Three layers, of which the drafter reads what enters the second."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))
        self.aux_hidden_state_layers = (1,)
        self.embed_tokens = nn.Embedding(8, 4)

    def forward(self, tokens: Any) -> Any:
        states, residual, entering = self.embed_tokens(tokens), None, []
        for layer in self.layers:
            entering.append(states if residual is None else states + residual)
            states, residual = layer(None, states, residual)
        return entering


def fused(*parts: Any) -> Any:
    return torch.cat(parts).detach()


def drafter(target: Target, weights: dict[str, Any]) -> Any:
    """With the two kinds of stacking, a padded head, the target's embedding, and flags."""
    model, inner, layer = nn.Module(), nn.Module(), nn.Module()
    layer.self_attn, layer.mlp = nn.Module(), nn.Module()
    layer.self_attn.qkv_proj = Packed(fused(weights["q"], weights["k"], weights["v"]), [4, 2, 2])
    layer.self_attn.rotary_emb = SimpleNamespace(base=5e5)
    layer.mlp.gate_up_proj = nn.Linear(4, 12, bias=False)
    layer.mlp.gate_up_proj.weight = nn.Parameter(fused(weights["gate"], weights["up"]))
    layer.mlp.gate_up_proj.output_sizes = [6, 6]
    layer._residual_norm = SimpleNamespace(__name__="_norm_before_residual")
    inner.layers, inner.embed_tokens = nn.ModuleList([layer]), target.embed_tokens
    inner.norm = SimpleNamespace(variance_epsilon=1e-6)
    inner.norm_output, inner.fc_norm, inner.num_aux_hidden_states = True, None, 1
    model.model, model.lm_head = inner, nn.Linear(4, 64, bias=False)
    model.lm_head.weight = nn.Parameter(torch.cat([weights["head"], torch.zeros(61, 4)]))
    model.lm_head.org_vocab_size = 3
    model.draft_id_to_target_id = nn.Parameter(torch.tensor([1, 2, 3]), requires_grad=False)
    return model


def engine(worker: Any) -> Any:
    return SimpleNamespace(collective_rpc=lambda function, args=(): [function(worker, *args)])


@pytest.fixture
def weights() -> dict[str, Any]:
    rows = {"q": 4, "k": 2, "v": 2, "gate": 6, "up": 6, "head": 3}
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(count, 4, generator=generator) for name, count in rows.items()}


@pytest.mark.parametrize("place", ["drafter", "speculator"])
def test_tensors_under_the_checkpoints_names(weights: dict[str, Any], place: str) -> None:
    target = Target()
    runner = SimpleNamespace(**{place: SimpleNamespace(model=drafter(target, weights))})
    weights["v"][0, 0] = 0.0
    held = Inside(engine(SimpleNamespace(model_runner=runner, get_model=lambda: target))).describe()
    assert held is not None
    names = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj"}
    for short, name in names.items():
        found = held["tensors"][f"layers.0.{name}.weight"]
        assert found["sha256"] == hashlib.sha256(weights[short].numpy().tobytes()).hexdigest(), name
        assert found["shape"] == list(weights[short].shape)
    assert held["tensors"]["lm_head.weight"]["shape"] == [3, 4]
    assert held["tensors"]["d2t"]["sha256"] == hashlib.sha256(np.array([1, 2, 3]).tobytes()).hexdigest()
    assert held["tensors"]["embed_tokens.weight"] == {"shape": [8, 4], "sha256": None, "shared": True}
    assert held["flags"] == {
        "fc_norm": False,
        "norm_output": True,
        "norm_before_fc": None,
        "norm_before_residual": True,
        "num_aux_hidden_states": 1,
        "aux_layer_ids": [1],
        "rms_norm_eps": 1e-6,
        "rope_theta": 5e5,
    }


def test_a_drafter_that_is_kept_elsewhere() -> None:
    worker = SimpleNamespace(model_runner=SimpleNamespace(), get_model=Target, rank=0)
    inside = Inside(engine(worker))
    assert inside.describe() is None
    assert not inside.watch({0: PROMPT})


class Proposer:
    """Takes what vLLM's own takes, and always drafts the same."""

    model = None

    def propose(
        self,
        target_token_ids: Any,
        target_positions: Any,
        target_hidden_states: Any,
        next_token_ids: Any,
        token_indices_to_sample: Any,
        common_attn_metadata: Any,
        another: Any = None,
    ) -> Any:
        return torch.tensor([[1, 2], [3, 4]])


class Runner:
    """Serves a watched and another prompt at once: prefills, then judges one draft of two tokens."""

    def __init__(self) -> None:
        self.target = Target()
        self.drafter: Any = Proposer()
        self.requests = {name: SimpleNamespace(prompt_token_ids=ids) for name, ids in (("a", [9, 9]), ("b", PROMPT))}
        self.input_batch = SimpleNamespace(req_ids=["a", "b", None])

    @torch.inference_mode()
    def step(self, tokens: list[int], positions: list[int], starts: list[int], ends: Any, following: list[int]) -> None:
        ids = torch.tensor(tokens) % 8
        self.entering = self.target(ids)
        self.drafter.propose(
            target_token_ids=ids,
            target_positions=torch.tensor(positions),
            target_hidden_states=self.entering[1],
            next_token_ids=torch.tensor(following),
            token_indices_to_sample=ends and torch.tensor(ends),
            common_attn_metadata=SimpleNamespace(query_start_loc_cpu=torch.tensor(starts)),
        )


def test_what_passes_between_target_and_drafter(tmp_path: Path) -> None:
    runner = Runner()
    worker = SimpleNamespace(model_runner=runner, get_model=lambda: runner.target, rank=0)
    inside = Inside(engine(worker))
    assert inside.watch({4: PROMPT})
    runner.step([1, 1, *PROMPT], [0, 1, 0, 1, 2], [0, 2, 5], None, [2, 3])
    first = [states.clone() for states in runner.entering]
    # Of the watched prompt's three tokens one was drafted rightly; the last one is rejected.
    runner.step([2, 1, 2, 3, 4, 0], [2, 3, 4, 3, 4, 5], [0, 3, 6], [0, 4], [6, 7])
    file = tmp_path / "record"
    assert inside.save(str(file)) == [4]
    assert "propose" not in vars(runner.drafter)
    found = load_file(file)
    assert found["4.tokens"].tolist() == [*PROMPT, 3, 4, 7]
    assert found["4.drafts"].tolist() == [[2, 3, 4], [4, 3, 4]]
    for layer, name in ((0, "4.0"), (1, "4.aux"), (2, "4.2")):
        assert torch.equal(found[name], torch.cat([first[layer][2:5], runner.entering[layer][3:5]])), name


def test_a_prompt_with_a_gap_is_left_out(tmp_path: Path) -> None:
    runner = Runner()
    inside = Inside(engine(SimpleNamespace(model_runner=runner, get_model=lambda: runner.target, rank=0)))
    inside.watch({0: PROMPT})
    runner.step([1, 1, 6, 7], [0, 1, 1, 2], [0, 2, 4], None, [2, 3])
    assert inside.save(str(tmp_path / "record")) == []


def test_another_vllms_way_of_drafting_does_no_harm(tmp_path: Path) -> None:
    runner = Runner()
    runner.drafter = type("OtherProposer", (), {"propose": lambda _self, tokens: tokens})()
    inside = Inside(engine(SimpleNamespace(model_runner=runner, get_model=lambda: runner.target, rank=0)))
    inside.watch({0: PROMPT})
    assert runner.drafter.propose(tokens=7) == 7
    assert inside.save(str(tmp_path / "record")) == []
