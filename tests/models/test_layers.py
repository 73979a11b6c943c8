"""Later layers take one input of the drafter's own width, as transformers' own layers do: they must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from transformers import DeepseekV3Config, LlamaConfig, Qwen3Config
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3DecoderLayer, DeepseekV3RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer, Qwen3RotaryEmbedding

from eaglehub.drafter.memory import CausalMemory

from .build import describe, random_model

if TYPE_CHECKING:
    from eaglehub.drafter.drafter import Drafter

THEIRS: dict[str, tuple[Any, Any, Any]] = {
    "llama": (LlamaConfig, LlamaDecoderLayer, LlamaRotaryEmbedding),
    "qwen3": (Qwen3Config, Qwen3DecoderLayer, Qwen3RotaryEmbedding),
    "mla": (DeepseekV3Config, DeepseekV3DecoderLayer, DeepseekV3RotaryEmbedding),
}
ROPE: dict[str, dict[str, Any] | None] = {
    "plain": None,
    "linear": {"type": "linear", "factor": 2.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    "deepseek yarn": {
        "type": "yarn",
        "factor": 4.0,
        "mscale": 1.0,
        "mscale_all_dim": 0.8,
        "original_max_position_embeddings": 64,
    },
    "longrope": {
        "rope_type": "longrope",
        "short_factor": [1.0] * 8,
        "long_factor": [3.0] * 8,
        "original_max_position_embeddings": 64,
        "factor": 4.0,
    },
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
}
CASES = [
    *(("llama", scaling, False) for scaling in ROPE),
    ("llama", "plain", True),
    ("qwen3", "plain", False),
    ("qwen3", "yarn", False),
    ("mla", "plain", False),
    ("mla", "deepseek yarn", False),
]


@pytest.mark.parametrize(("architecture", "scaling", "biased"), CASES)
def test_a_later_layer_is_that_of_transformers(architecture: str, scaling: str, biased: bool) -> None:
    drafter = describe(
        architecture, num_hidden_layers=2, rope_scaling=ROPE[scaling], attention_bias=biased, mlp_bias=biased
    )
    model = random_model(drafter)
    theirs, rotary = _transformers(drafter)
    theirs.load_state_dict(model.layers[1].state_dict())
    states = torch.randn(2, 80, drafter.hidden_size, generator=torch.Generator().manual_seed(3))
    positions = torch.arange(80)
    causal = torch.full((80, 80), float("-inf")).triu(1)[None, None]

    with torch.inference_mode():
        wanted = theirs(
            states,
            attention_mask=causal,
            position_ids=positions[None],
            position_embeddings=rotary(states, positions[None]),
        )
        ours = model.layers[1](states, states, model.rotary(states, positions[None]), CausalMemory(), 1)

    torch.testing.assert_close(ours, wanted, atol=2e-5, rtol=1e-4)


def _transformers(drafter: Drafter) -> tuple[Any, Any]:
    config_class, layer, rotary = THEIRS[drafter.architecture]
    heads = dict(drafter.mla) or {"head_dim": drafter.head_dim}
    scaling = dict(drafter.rope_scaling or {"rope_type": "default"})
    scaling.setdefault("rope_type", scaling.pop("type", "default"))
    config = config_class(
        hidden_size=drafter.hidden_size,
        intermediate_size=drafter.intermediate_size,
        num_hidden_layers=2,
        num_attention_heads=drafter.num_attention_heads,
        num_key_value_heads=drafter.num_key_value_heads,
        max_position_embeddings=drafter.max_position_embeddings,
        rms_norm_eps=drafter.rms_norm_eps,
        attention_bias=drafter.attention_bias,
        mlp_bias=drafter.mlp_bias,
        rope_parameters={"rope_theta": drafter.rope_theta, **scaling},
        attn_implementation="eager",
        **heads,
        **({"first_k_dense_replace": 2} if drafter.architecture == "mla" else {}),
    )
    return layer(config, 1).eval(), rotary(config)
