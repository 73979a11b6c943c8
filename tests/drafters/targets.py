"""Target folders that hold nothing but a config.json, as large as the fixtures' drafters expect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .configs import YARN

if TYPE_CHECKING:
    from pathlib import Path

    from .drafter import Config

_COMMON: Config = {
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 64,
    "initializer_range": 0.02,
    "intermediate_size": 128,
    "max_position_embeddings": 8192,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.57.1",
    "use_cache": True,
    "vocab_size": 160,
}
_LATENT: Config = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "first_k_dense_replace": 1,
    "kv_lora_rank": 16,
    "moe_intermediate_size": 32,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 61,
    "num_key_value_heads": 4,
    "q_lora_rank": 24,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
}
_KINDS: dict[str, Config] = {
    "llama": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 12},
    "qwen3": {
        "architectures": ["Qwen3ForCausalLM"],
        "head_dim": 16,
        "layer_types": ["full_attention"] * 36,
        "model_type": "qwen3",
        "num_hidden_layers": 36,
    },
    "gpt_oss": {
        "architectures": ["GptOssForCausalLM"],
        "attention_bias": True,
        "head_dim": 16,
        "layer_types": ["sliding_attention", "full_attention"] * 18,
        "model_type": "gpt_oss",
        "num_experts_per_tok": 4,
        "num_hidden_layers": 36,
        "num_local_experts": 8,
        "rope_scaling": YARN,
        "rope_theta": 150000,
        "sliding_window": 128,
    },
    "kimi_k2": _LATENT | {"model_type": "kimi_k2", "rope_theta": 50000.0},
    "deepseek_v3": _LATENT | {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1, "rope_theta": 10000.0},
}
_WRAPPERS: dict[str, Config] = {
    "kimi_k2": {"architectures": ["KimiK25ForConditionalGeneration"], "model_type": "kimi_k25"},
}


def target_config(kind: str, folder: Path, **overrides: Any) -> Path:
    """Write a target's config.json into `folder` and return the folder.

    Args:
        kind: `llama` (12 layers), `qwen3` and `gpt_oss` (36), `deepseek_v3` (61), or `kimi_k2` (61, the language
            model nested in `text_config` as its vision wrapper has it).
        folder: made when it does not exist.
        overrides: keys of the language model to change.
    """
    text = _COMMON | _KINDS[kind] | overrides
    config = _WRAPPERS[kind] | {"text_config": text} if kind in _WRAPPERS else text
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    return folder
