"""The canonical drafter that every fixture dresses up: its tensors in vLLM's names and the facts of its config."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Tensors: TypeAlias = dict[str, Array]
Config: TypeAlias = dict[str, Any]

DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "float16": np.dtype(np.float16), "float32": np.dtype(np.float32)}


@dataclass(frozen=True, kw_only=True)
class Drafter:
    """What a tiny drafter is made of.

    Attributes:
        layers: decoder layers; the first attends to cat(embedding, hidden), the others to hidden.
        embed: whether the file holds its own embedding.
        attention_bias: biases on all four attention projections.
        mlp_bias: biases on all three MLP projections.
        mla: latent attention in place of grouped-query attention.
        mask_hidden: the learned state of a parallel drafter.
    """

    hidden: int = 64
    target_hidden: int = 64
    vocab: int = 160
    draft_vocab: int = 48
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    intermediate: int = 96
    aux: int = 3
    layers: int = 1
    embed: bool = False
    fc_norm: bool = False
    input_norm: bool = False
    qk_norm: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    mla: bool = False
    mask_hidden: bool = False
    dtype: str = "bfloat16"

    q_lora: int = 24
    kv_lora: int = 16
    nope: int = 8
    rope: int = 8
    v_head: int = 8

    @property
    def pruned(self) -> bool:
        """Whether the draft vocabulary is smaller than the target's."""
        return self.draft_vocab < self.vocab

    def weights(self) -> Tensors:
        """Every tensor in vLLM's names, `d2t` included where the vocabulary is pruned."""
        weights = {name: values(name, shape, self.dtype) for name, shape in self._shapes().items()}
        return weights | ({"d2t": self.d2t()} if self.pruned else {})

    def d2t(self) -> Array:
        """Offsets [Vd] int64: target id minus draft id."""
        offsets: Array = self.draft_ids() - np.arange(self.draft_vocab)
        return offsets

    def t2d(self) -> Array:
        """Which target ids [V] can be drafted, bool."""
        mask = np.zeros(self.vocab, dtype=np.bool_)
        mask[self.draft_ids()] = True
        return mask

    def draft_ids(self) -> Array:
        """Ascending target ids [Vd] int64: runs of neighbours, as frequent tokens form, then scattered ones."""
        if not self.pruned:
            return np.arange(self.vocab)
        runs = np.concatenate([np.arange(0, 12), np.arange(20, 30), np.arange(50, 58)])
        scattered = np.random.default_rng(7).choice(np.arange(60, self.vocab), self.draft_vocab - runs.size, False)
        return np.concatenate([runs, np.sort(scattered)])

    def facts(self) -> Config:
        """What a converted config.json says about this drafter; flags that add no tensor are false."""
        attention = (
            {
                "q_lora_rank": self.q_lora,
                "kv_lora_rank": self.kv_lora,
                "qk_nope_head_dim": self.nope,
                "qk_rope_head_dim": self.rope,
                "v_head_dim": self.v_head,
            }
            if self.mla
            else {"num_key_value_heads": self.kv_heads, "head_dim": self.head_dim}
        )
        return attention | {
            "architectures": [self._architecture()[0]],
            "model_type": self._architecture()[1],
            "hidden_size": self.hidden,
            "target_hidden_size": self.target_hidden,
            "vocab_size": self.vocab,
            "draft_vocab_size": self.draft_vocab,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.intermediate,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-05,
            "attention_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias,
            "num_aux_hidden_states": self.aux,
            "fc_norm": self.fc_norm,
            "norm_output": False,
            "norm_before_fc": self.input_norm,
            "norm_before_residual": False,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
        }

    def _architecture(self) -> tuple[str, str]:
        if self.mla:
            return "Eagle3DeepseekV2ForCausalLM", "deepseek_v2"
        return ("Eagle3Qwen3ForCausalLM", "qwen3") if self.qk_norm else ("LlamaForCausalLMEagle3", "llama")

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        wide = self.aux * self.target_hidden
        optional: dict[str, tuple[bool, tuple[int, ...]]] = {
            "embed_tokens.weight": (self.embed, (self.vocab, self.hidden)),
            "input_norm.weight": (self.input_norm, (wide,)),
            "mask_hidden": (self.mask_hidden, (1, 1, wide)),
        }
        shapes = {name: shape for name, (present, shape) in optional.items() if present}
        shapes |= {f"fc_norm.{i}.weight": (self.target_hidden,) for i in range(self.aux) if self.fc_norm}
        shapes |= {"fc.weight": (self.hidden, wide)}
        for index in range(self.layers):
            shapes |= {f"layers.{index}.{name}": shape for name, shape in self._layer_shapes(index).items()}
        return shapes | {"norm.weight": (self.hidden,), "lm_head.weight": (self.draft_vocab, self.hidden)}

    def _layer_shapes(self, index: int) -> dict[str, tuple[int, ...]]:
        hidden, inner = self.hidden, self.intermediate
        norms = ["input_layernorm", "post_attention_layernorm"] + ["hidden_norm"] * (index == 0)
        attention = self._attention_shapes(hidden if index else 2 * hidden)
        mlp = {"mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner)}
        biased = (attention if self.attention_bias else {}) | (mlp if self.mlp_bias else {})
        shapes: dict[str, tuple[int, ...]] = {f"{name}.weight": (hidden,) for name in norms}
        shapes |= {f"{name}.weight": shape for name, shape in (attention | mlp).items()}
        shapes |= {f"{name}.bias": shape[:1] for name, shape in biased.items()}
        if self.mla:
            shapes |= {"self_attn.q_a_layernorm.weight": (self.q_lora,)}
            shapes |= {"self_attn.kv_a_layernorm.weight": (self.kv_lora,)}
        return shapes | {f"self_attn.{name}_norm.weight": (self.head_dim,) for name in "qk" if self.qk_norm}

    def _attention_shapes(self, width: int) -> dict[str, tuple[int, int]]:
        if self.mla:
            return {
                "self_attn.q_a_proj": (self.q_lora, width),
                "self_attn.q_b_proj": (self.heads * (self.nope + self.rope), self.q_lora),
                "self_attn.kv_a_proj_with_mqa": (self.kv_lora + self.rope, width),
                "self_attn.kv_b_proj": (self.heads * (self.nope + self.v_head), self.kv_lora),
                "self_attn.o_proj": (self.hidden, self.heads * self.v_head),
            }
        return {
            "self_attn.q_proj": (self.heads * self.head_dim, width),
            "self_attn.k_proj": (self.kv_heads * self.head_dim, width),
            "self_attn.v_proj": (self.kv_heads * self.head_dim, width),
            "self_attn.o_proj": (self.hidden, self.heads * self.head_dim),
        }


@cache
def values(name: str, shape: tuple[int, ...], dtype: str) -> Array:
    """Random values that depend on the name, so that no two tensors can be mistaken; norms are around one."""
    noise = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape, dtype=np.float32)
    array = (1 + 0.1 * noise if "norm" in name else 0.05 * noise).astype(DTYPES[dtype])
    array.setflags(write=False)
    return array


def with_t2d(drafter: Drafter) -> Tensors:
    """The weights with both vocabulary maps, also where the draft vocabulary is the whole one."""
    maps = {"d2t": drafter.d2t(), "t2d": drafter.t2d()}
    return drafter.weights() | maps


def midlayer(tensors: Tensors) -> Tensors:
    """The single decoder layer under the name that SafeAILab gave it."""
    return {name.replace("layers.0.", "midlayer.", 1): array for name, array in tensors.items()}


def prefixed(tensors: Tensors, prefix: str, *, spare: tuple[str, ...] = ()) -> Tensors:
    """Every name with `prefix`, but for those that start with one of `spare`."""
    return {name if spare and name.startswith(spare) else prefix + name: array for name, array in tensors.items()}


def in_aux_order(tensors: Tensors, ids: list[int]) -> Tensors:
    """Canonical tensors as written when the aux states were taken in the order of `ids`, not ascending."""
    ranks = [sorted(ids).index(layer) for layer in ids]
    fc = tensors["fc.weight"]
    moved = {"fc.weight": fc.reshape(len(fc), len(ids), -1)[:, ranks].reshape(fc.shape)}
    if "input_norm.weight" in tensors:
        moved["input_norm.weight"] = tensors["input_norm.weight"].reshape(len(ids), -1)[ranks].reshape(-1)
    norms = {f"fc_norm.{i}.weight": f"fc_norm.{rank}.weight" for i, rank in enumerate(ranks)}
    moved |= {name: tensors[source] for name, source in norms.items() if source in tensors}
    return tensors | moved
