"""Which tensors a drafter must and may have, with their shapes: the canonical (vLLM) tensor table as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from eaglehub.drafter.drafter import Drafter

# Beside a quantised weight stand these; their shapes are the quantiser's business.
SCALE_SUFFIXES = (
    "weight_scale", "weight_scale_2", "weight_scale_inv", "input_scale", "weight_global_scale", "input_global_scale",
    "weight_zero_point", "weight_packed", "weight_shape", "weight_g_idx", "k_scale", "v_scale", "q_scale",
)  # fmt: skip
_SCALE = re.compile(rf"(?:.+\.)?(?:{'|'.join(SCALE_SUFFIXES)})")

# (name, symbolic shape, condition): axes are sums of products of `_symbols`, conditions those of `_conditions`.
_GLOBAL = (
    ("embed_tokens.weight", "vocab hidden", "embedding"),
    ("input_norm.weight", "aux*target", "norm_before_fc"),
    ("fc.weight", "hidden aux*target", "aux"),
    ("norm.weight", "hidden", ""),
    ("lm_head.weight", "draft_vocab hidden", "head"),
    ("d2t", "draft_vocab", "pruned"),
)
_LAYER = (
    ("input_layernorm.weight", "hidden", ""),
    ("hidden_norm.weight", "hidden", "first"),
    ("post_attention_layernorm.weight", "hidden", ""),
    ("mlp.gate_proj.weight", "inter hidden", ""),
    ("mlp.up_proj.weight", "inter hidden", ""),
    ("mlp.down_proj.weight", "hidden inter", ""),
    ("mlp.gate_proj.bias", "inter", "mlp_bias"),
    ("mlp.up_proj.bias", "inter", "mlp_bias"),
    ("mlp.down_proj.bias", "hidden", "mlp_bias"),
    ("self_attn.q_proj.weight", "heads*head in", "gqa"),
    ("self_attn.k_proj.weight", "kv_heads*head in", "gqa"),
    ("self_attn.v_proj.weight", "kv_heads*head in", "gqa"),
    ("self_attn.o_proj.weight", "hidden heads*head", "gqa"),
    ("self_attn.q_proj.bias", "heads*head", "attention_bias"),
    ("self_attn.k_proj.bias", "kv_heads*head", "attention_bias"),
    ("self_attn.v_proj.bias", "kv_heads*head", "attention_bias"),
    ("self_attn.o_proj.bias", "hidden", "o_bias"),
    ("self_attn.q_norm.weight", "head", "qwen3"),
    ("self_attn.k_norm.weight", "head", "qwen3"),
    ("self_attn.q_proj.weight", "heads*nope+heads*rope in", "plain_q"),
    ("self_attn.q_a_proj.weight", "q_lora in", "low_rank_q"),
    ("self_attn.q_a_layernorm.weight", "q_lora", "low_rank_q"),
    ("self_attn.q_b_proj.weight", "heads*nope+heads*rope q_lora", "low_rank_q"),
    ("self_attn.kv_a_proj_with_mqa.weight", "kv_lora+rope in", "mla"),
    ("self_attn.kv_a_layernorm.weight", "kv_lora", "mla"),
    ("self_attn.kv_b_proj.weight", "heads*nope+heads*value kv_lora", "mla"),
    ("self_attn.o_proj.weight", "hidden heads*value", "mla"),
)


FLOATS = ("F64", "F32", "BF16", "F16")
_VECTORS = re.compile(r"d2t|t2d|.*norm\.weight|fc_norm\.\d+\.weight|.*\.bias")


def rank(name: str) -> int | None:
    """How many axes a canonical tensor has; None for those of any shape."""
    if name == "mask_hidden" or is_scale(name):
        return None
    return 1 if _VECTORS.fullmatch(name) else 2


@dataclass(frozen=True, slots=True)
class Expected:
    """A tensor that the drafter's description asks for.

    `formula` is the symbolic shape, for messages.
    """

    name: str
    shape: tuple[int, ...]
    formula: str


def is_scale(name: str) -> bool:
    """Whether the tensor belongs to a quantised weight."""
    return _SCALE.fullmatch(name) is not None


def expected_tensors(drafter: Drafter) -> dict[str, Expected]:
    """Every tensor the drafter needs, by canonical name, in file order."""
    return {tensor.name: tensor for tensor in _all(drafter)}


def _all(drafter: Drafter) -> Iterator[Expected]:
    symbols = _symbols(drafter)
    conditions = _conditions(drafter)
    for name, formula, condition in _GLOBAL:
        if not condition or conditions[condition]:
            yield _expected(name, formula, symbols)
    if drafter.fc_norm:
        for chunk in range(drafter.num_aux_hidden_states):
            yield _expected(f"fc_norm.{chunk}.weight", "target", symbols)
    for layer in range(drafter.num_hidden_layers):
        # The first layer attends to the token's embedding and the hidden state side by side.
        own = symbols | {"in": (2 if layer == 0 else 1) * drafter.hidden_size}
        for name, formula, condition in _LAYER:
            if not condition or (conditions | {"first": layer == 0})[condition]:
                yield _expected(f"layers.{layer}.{name}", formula, own)


def _expected(name: str, formula: str, symbols: Mapping[str, int]) -> Expected:
    return Expected(name, tuple(_value(axis, symbols) for axis in formula.split()), f"[{formula.replace(' ', ', ')}]")


def _value(axis: str, symbols: Mapping[str, int]) -> int:
    """Value of a sum of products of symbols, such as `heads*nope+heads*rope`."""
    total = 0
    for term in axis.split("+"):
        product = 1
        for symbol in term.split("*"):
            product *= symbols[symbol]
        total += product
    return total


def _symbols(drafter: Drafter) -> dict[str, int]:
    mla = drafter.mla
    return {
        "vocab": drafter.vocab_size,
        "draft_vocab": drafter.draft_vocab_size,
        "hidden": drafter.hidden_size,
        "target": drafter.target_hidden_size,
        "aux": drafter.num_aux_hidden_states,
        "inter": drafter.intermediate_size,
        "heads": drafter.num_attention_heads,
        "kv_heads": drafter.num_key_value_heads,
        "head": drafter.head_dim or 0,
        "q_lora": mla.get("q_lora_rank") or 0,
        "kv_lora": mla.get("kv_lora_rank") or 0,
        "nope": mla.get("qk_nope_head_dim") or 0,
        "rope": mla.get("qk_rope_head_dim") or 0,
        "value": mla.get("v_head_dim") or 0,
    }


def _conditions(drafter: Drafter) -> dict[str, bool]:
    mla = drafter.architecture == "mla"
    low_rank_q = drafter.mla.get("q_lora_rank") is not None
    return {
        "embedding": drafter.embedding,
        "norm_before_fc": drafter.norm_before_fc,
        "aux": drafter.num_aux_hidden_states > 0,
        "head": drafter.head,
        "pruned": drafter.pruned,
        "mlp_bias": drafter.mlp_bias,
        "attention_bias": drafter.attention_bias and not mla,
        "o_bias": drafter.attention_bias and drafter.architecture == "llama",
        "gqa": not mla,
        "qwen3": drafter.architecture == "qwen3",
        "mla": mla,
        "low_rank_q": mla and low_rank_q,
        "plain_q": mla and not low_rank_q,
    }
