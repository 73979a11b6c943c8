"""Rotary positions of the reference drafter: the angles are transformers' own, so every kind that it knows is computed
as it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.drafter.drafter import Drafter


def rotary_embedding(drafter: Drafter) -> Any:
    """The module that gives cosines and sines [1, T, size] of positions [1, T]."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    scaling = dict(drafter.rope_scaling or {})
    kind = scaling.pop("type", None)
    kind = scaling.pop("rope_type", kind) or "default"
    # With text alone the three parts of a multimodal position are the same.
    parameters = {"rope_theta": drafter.rope_theta, **scaling, "rope_type": "default" if kind == "mrope" else kind}
    config = LlamaConfig(
        hidden_size=drafter.hidden_size,
        num_attention_heads=drafter.num_attention_heads,
        head_dim=drafter.mla.get("qk_rope_head_dim") or drafter.head_dim,
        max_position_embeddings=drafter.max_position_embeddings or 2048,
        rope_parameters=parameters,
    )
    return LlamaRotaryEmbedding(config)


def rotate(states: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Queries or keys [B, heads, T, size], turned by the angles of their positions."""
    cos, sin = (part[:, None] for part in angles)
    first, second = states.chunk(2, dim=-1)
    return states * cos + torch.cat([-second, first], dim=-1) * sin


def paired(states: Tensor) -> Tensor:
    """DeepSeek rotates neighbours; with even and odd ones apart, in queries and keys alike, `rotate` does the same."""
    return torch.cat([states[..., ::2], states[..., 1::2]], dim=-1)


def yarn_scale(scaling: Mapping[str, Any]) -> float:
    """What DeepSeek's attention scores are multiplied by under YaRN; 1 without `mscale_all_dim`."""
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import yarn_apply_mscale

    kind = scaling.get("rope_type", scaling.get("type", "default"))
    return float(yarn_apply_mscale({**scaling, "rope_type": kind}, 1.0))
