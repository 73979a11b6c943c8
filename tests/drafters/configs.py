"""Config templates shared by several producers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .drafter import Config, Drafter

YARN = {
    "rope_type": "yarn",
    "factor": 32.0,
    "original_max_position_embeddings": 4096,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
}


def llama(drafter: Drafter, architecture: str = "LlamaForCausalLMEagle3", **more: Any) -> Config:
    """The flat keys nearly every trainer writes, in the spelling of a Llama template."""
    return {
        "architectures": [architecture],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": drafter.hidden,
        "initializer_range": 0.02,
        "intermediate_size": drafter.intermediate,
        "max_position_embeddings": 2048,
        "model_type": "llama",
        "num_attention_heads": drafter.heads,
        "num_key_value_heads": drafter.kv_heads,
        "num_hidden_layers": drafter.layers,
        "pad_token_id": 0,
        "rms_norm_eps": 1e-05,
        "tie_word_embeddings": False,
        "torch_dtype": drafter.dtype,
        "transformers_version": "4.51.0",
        "use_cache": True,
        "vocab_size": drafter.vocab,
        "draft_vocab_size": drafter.draft_vocab,
    } | more


def mla(drafter: Drafter, **more: Any) -> Config:
    """The flat keys of a latent-attention drafter; `head_dim` and the RoPE length are not among them."""
    base = llama(drafter, "Eagle3DeepseekV2ForCausalLM")
    for key in ("max_position_embeddings", "tie_word_embeddings", "transformers_version"):
        del base[key]
    latent = {
        "model_type": "kimi_k2",
        "num_key_value_heads": drafter.heads,
        "q_lora_rank": drafter.q_lora,
        "kv_lora_rank": drafter.kv_lora,
        "qk_nope_head_dim": drafter.nope,
        "qk_rope_head_dim": drafter.rope,
        "v_head_dim": drafter.v_head,
        "rope_theta": 50000.0,
    }
    return base | latent | more


def nested_ids(ids: list[int], **more: Any) -> Config:
    """The `eagle_config` of SGLang-style checkpoints."""
    return {"eagle_aux_hidden_state_layer_ids": ids, "use_aux_hidden_state": True} | more
