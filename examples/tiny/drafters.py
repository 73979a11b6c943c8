"""The tiny drafters: one EAGLE-3 layer in vLLM's names and meaning, trained on its own rollouts."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from .targets import EPS, HEAD_DIM, HEADS, HIDDEN, INTERMEDIATE, LATENT, POSITIONS, ROPE_THETA, YARN, batch

if TYPE_CHECKING:
    from pathlib import Path

AUX_IDS = (1, 2, 3)
DRAFT_VOCAB = 320
_KV_HEADS, _ROLLOUT, _RATE = 2, 3, 3e-3


@dataclass(frozen=True)
class Kind:
    """What kind of drafter: `llama`, `qwen3` or `mla`, and whether EAGLE 3.1."""

    name: str
    generation_3_1: bool = False

    def config(self, vocab: int) -> dict[str, Any]:
        """Its config.json as vLLM reads it."""
        architectures = {
            "llama": ("LlamaForCausalLMEagle3", "llama"),
            "qwen3": ("Eagle3Qwen3ForCausalLM", "qwen3"),
            "mla": ("Eagle3DeepseekV2ForCausalLM", "deepseek_v2"),
        }
        architecture, model_type = architectures[self.name]
        heads = {"num_key_value_heads": HEADS, "rope_scaling": YARN, **LATENT} if self.name == "mla" else {}
        return {
            "architectures": [architecture],
            "model_type": model_type,
            "hidden_size": HIDDEN,
            "target_hidden_size": HIDDEN,
            "vocab_size": vocab,
            "draft_vocab_size": DRAFT_VOCAB,
            "num_hidden_layers": 1,
            "num_attention_heads": HEADS,
            **(heads or {"num_key_value_heads": _KV_HEADS, "head_dim": HEAD_DIM}),
            "intermediate_size": INTERMEDIATE,
            "hidden_act": "silu",
            "rms_norm_eps": EPS,
            "attention_bias": False,
            "mlp_bias": False,
            "rope_theta": ROPE_THETA,
            "max_position_embeddings": POSITIONS,
            "num_aux_hidden_states": len(AUX_IDS),
            "eagle_aux_hidden_state_layer_ids": list(AUX_IDS),
            "fc_norm": self.generation_3_1,
            "norm_output": self.generation_3_1,
            "norm_before_fc": False,
            "norm_before_residual": False,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "eagle_config": {"use_aux_hidden_state": True},
        }


class Drafter(nn.Module):
    """One layer; the names of its parameters are those of the checkpoint."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.kind = kind
        if kind.generation_3_1:
            self.fc_norm = nn.ModuleList(_norm(HIDDEN) for _ in AUX_IDS)
        self.fc = nn.Linear(len(AUX_IDS) * HIDDEN, HIDDEN, bias=False)
        self.layers = nn.ModuleList([Layer(kind)])
        self.norm = _norm(HIDDEN)
        self.lm_head = nn.Linear(HIDDEN, DRAFT_VOCAB, bias=False)

    def combine(self, aux: list[Tensor]) -> Tensor:
        """The aux states, each [batch, length, hidden], as the first state to draft from."""
        if self.kind.generation_3_1:
            aux = [norm(state) for norm, state in zip(self.fc_norm, aux, strict=True)]
        state: Tensor = self.fc(torch.cat(aux, dim=-1))
        return state

    def forward(self, embedded: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Logits over the draft vocabulary, and the state that the next draft step starts from."""
        before_norm = self.layers[0](embedded, state)
        after_norm = self.norm(before_norm)
        return self.lm_head(after_norm), after_norm if self.kind.generation_3_1 else before_norm


class Layer(nn.Module):
    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.input_layernorm = _norm(HIDDEN)
        self.hidden_norm = _norm(HIDDEN)
        self.post_attention_layernorm = _norm(HIDDEN)
        self.self_attn = LatentAttention() if kind.name == "mla" else Attention(kind.name == "qwen3")
        self.mlp = Mlp()

    def forward(self, embedded: Tensor, state: Tensor) -> Tensor:
        both = torch.cat([self.input_layernorm(embedded), self.hidden_norm(state)], dim=-1)
        state = state + self.self_attn(both)
        result: Tensor = state + self.mlp(self.post_attention_layernorm(state))
        return result


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.up_proj = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.down_proj = nn.Linear(INTERMEDIATE, HIDDEN, bias=False)

    def forward(self, state: Tensor) -> Tensor:
        result: Tensor = self.down_proj(functional.silu(self.gate_proj(state)) * self.up_proj(state))
        return result


class Attention(nn.Module):
    """Grouped-query attention over embedding and state side by side."""

    def __init__(self, normed: bool) -> None:
        super().__init__()
        self.q_proj = nn.Linear(2 * HIDDEN, HEADS * HEAD_DIM, bias=False)
        self.k_proj = nn.Linear(2 * HIDDEN, _KV_HEADS * HEAD_DIM, bias=False)
        self.v_proj = nn.Linear(2 * HIDDEN, _KV_HEADS * HEAD_DIM, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD_DIM, HIDDEN, bias=False)
        self.normed = normed
        if normed:
            self.q_norm, self.k_norm = _norm(HEAD_DIM), _norm(HEAD_DIM)

    def forward(self, both: Tensor) -> Tensor:
        query, key, value = (_heads(project(both), HEAD_DIM) for project in (self.q_proj, self.k_proj, self.v_proj))
        if self.normed:
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = _rotate_halves(query), _rotate_halves(key)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        result: Tensor = self.o_proj(attended.transpose(1, 2).flatten(2))
        return result


class LatentAttention(nn.Module):
    """DeepSeek's latent attention, the rotated part of the key shared by all heads."""

    def __init__(self) -> None:
        super().__init__()
        self.nope, self.rope, self.value = (LATENT[f"{part}_head_dim"] for part in ("qk_nope", "qk_rope", "v"))
        q_rank, kv_rank = LATENT["q_lora_rank"], LATENT["kv_lora_rank"]
        self.q_a_proj = nn.Linear(2 * HIDDEN, q_rank, bias=False)
        self.q_a_layernorm = _norm(q_rank)
        self.q_b_proj = nn.Linear(q_rank, HEADS * (self.nope + self.rope), bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(2 * HIDDEN, kv_rank + self.rope, bias=False)
        self.kv_a_layernorm = _norm(kv_rank)
        self.kv_b_proj = nn.Linear(kv_rank, HEADS * (self.nope + self.value), bias=False)
        self.o_proj = nn.Linear(HEADS * self.value, HIDDEN, bias=False)

    def forward(self, both: Tensor) -> Tensor:
        query = _heads(self.q_b_proj(self.q_a_layernorm(self.q_a_proj(both))), self.nope + self.rope)
        plain, rotated = query.split([self.nope, self.rope], dim=-1)
        latent, shared = self.kv_a_proj_with_mqa(both).split([LATENT["kv_lora_rank"], self.rope], dim=-1)
        key_value = _heads(self.kv_b_proj(self.kv_a_layernorm(latent)), self.nope + self.value)
        key, value = key_value.split([self.nope, self.value], dim=-1)
        shared = _rotate_pairs(shared.unsqueeze(1)).expand(-1, HEADS, -1, -1)
        query = torch.cat([plain, _rotate_pairs(rotated)], dim=-1)
        attended = functional.scaled_dot_product_attention(
            query, torch.cat([key, shared], dim=-1), value, is_causal=True
        )
        result: Tensor = self.o_proj(attended.transpose(1, 2).flatten(2))
        return result


def make_drafter(kind: Kind, target: Any, tokenizer: Any, steps: int) -> tuple[Drafter, Tensor]:
    """Train a drafter on the target's states; returns it and the target ids [draft vocabulary] of its head's rows.

    As in the engine it drafts several tokens on end, each from the state that the one before left.
    """
    torch.manual_seed(2)
    rng = random.Random(3)
    kept = _frequent_tokens(tokenizer, len(tokenizer))
    drafted = torch.full((len(tokenizer),), -100)
    drafted[kept] = torch.arange(len(kept))
    drafter = Drafter(kind)
    with torch.no_grad():
        drafter.lm_head.weight.copy_(target.lm_head.weight[kept])
    optimizer = torch.optim.AdamW(drafter.parameters(), lr=_RATE, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
    for _ in range(steps):
        tokens = batch(tokenizer, rng)
        with torch.no_grad():
            seen = target.model(input_ids=tokens, output_hidden_states=True)
            chosen = target.lm_head(seen.last_hidden_state).argmax(-1)
            embedded = target.get_input_embeddings()(tokens)
        loss = _rollout_loss(drafter, [seen.hidden_states[i] for i in AUX_IDS], embedded, drafted[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return drafter.eval(), kept


def _rollout_loss(drafter: Drafter, aux: list[Tensor], embedded: Tensor, wanted: Tensor) -> Tensor:
    """Position t sees the embedding of token t+1 and is to say what the target says there."""
    state = drafter.combine(aux)[:, :-1]
    embedded, wanted = embedded[:, 1:], wanted[:, 1:]
    loss = torch.zeros(())
    for _ in range(_ROLLOUT):
        logits, state = drafter(embedded, state)
        loss = loss + functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=-100)
        state, embedded, wanted = state[:, :-1], embedded[:, 1:], wanted[:, 1:]
    return loss / _ROLLOUT


def save_drafter(drafter: Drafter, kept: Tensor, vocab: int, folder: Path) -> None:
    """In vLLM's layout; the head's rows are mapped to the target's ids by offsets."""
    folder.mkdir(parents=True)
    tensors = {name: tensor.contiguous() for name, tensor in drafter.state_dict().items()}
    save_file(
        tensors | {"d2t": kept - torch.arange(len(kept))}, folder / "model.safetensors", metadata={"format": "pt"}
    )
    (folder / "config.json").write_text(json.dumps(drafter.kind.config(vocab), indent=2), encoding="utf-8")


def _frequent_tokens(tokenizer: Any, vocab: int) -> Tensor:
    rng = random.Random(4)
    counts = torch.bincount(torch.cat([batch(tokenizer, rng).flatten() for _ in range(20)]), minlength=vocab)
    return counts.argsort(descending=True)[:DRAFT_VOCAB].sort().values


def _norm(size: int) -> nn.RMSNorm:
    return nn.RMSNorm(size, eps=EPS)


def _heads(flat: Tensor, size: int) -> Tensor:
    return flat.unflatten(-1, (-1, size)).transpose(1, 2)


def _angles(states: Tensor) -> Tensor:
    length, size = states.shape[-2:]
    frequencies = ROPE_THETA ** (-torch.arange(0, size, 2) / size)
    return torch.arange(length)[:, None] * frequencies


def _rotate_halves(states: Tensor) -> Tensor:
    angles = _angles(states)
    first, second = states.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _rotate_pairs(states: Tensor) -> Tensor:
    angles = _angles(states)
    first, second = states[..., ::2], states[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-1).flatten(-2)
