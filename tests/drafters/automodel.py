"""NeMo Automodel: the target's whole config with a few overrides, every decoder tensor under `model.`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .configs import YARN
from .drafter import Config, Drafter, Tensors, prefixed, with_t2d
from .source import Fixtures, Source, expect

_TOP_LEVEL = ("lm_head.", "d2t", "t2d", "mask_hidden")
_MOE_KEYS = ("num_local_experts", "num_experts_per_tok", "experts_per_token", "n_routed_experts", "moe_layer_freq")


def automodel(drafter: Drafter, target: Config, keys: Config | None = None, **expected: Any) -> Source:
    """A consolidated checkpoint: `target` is the target's own config, `keys` what the recipe sets besides.

    Layer ids are never written, even where the recipe set its own, so there is always something to warn of.
    """
    overrides = {
        "architectures": ["LlamaEagle3DraftModel"],
        "attn_implementation": "sdpa",
        "draft_vocab_size": drafter.draft_vocab,
        "fc_norm": drafter.fc_norm,
        "norm_output": False,
        "target_hidden_size": drafter.target_hidden,
        "tie_word_embeddings": False,
    }
    return Source(
        config=target | overrides | (keys or {}),
        tensors=layout(drafter),
        expected=expect(
            drafter, "automodel", **{"dropped": ("t2d",), "warns": ("layer ids",), "absent": _MOE_KEYS} | expected
        ),
        files={"tokenizer_config.json": "{}"},
    )


def layout(drafter: Drafter) -> Tensors:
    """Automodel's names."""
    return prefixed(with_t2d(drafter), "model.", spare=_TOP_LEVEL)


def _target(drafter: Drafter, model_type: str, layers: int, **more: Any) -> Config:
    return {
        "architectures": [f"{model_type.title().replace('_', '')}ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "dtype": drafter.dtype,
        "eos_token_id": 2,
        "head_dim": drafter.head_dim,
        "hidden_act": "silu",
        "hidden_size": drafter.hidden,
        "initializer_range": 0.02,
        "intermediate_size": drafter.intermediate,
        "max_position_embeddings": 40960,
        "model_type": model_type,
        "num_attention_heads": drafter.heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": drafter.kv_heads,
        "rms_norm_eps": 1e-05,
        "transformers_version": "5.5.0",
        "use_cache": True,
        "vocab_size": drafter.vocab,
    } | more


def qwen3_target(drafter: Drafter) -> Config:
    """A Qwen3 target of 36 layers as transformers 5 spells it."""
    return _target(
        drafter,
        "qwen3",
        36,
        layer_types=["full_attention"] * 36,
        max_window_layers=36,
        rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"},
        sliding_window=None,
        use_sliding_window=False,
    )


def _sliding() -> Source:
    """A quantised gpt-oss target: its window, its experts and its scales are not the drafter's, its YaRN is."""
    drafter = Drafter(embed=True, attention_bias=True)
    target = _target(
        drafter,
        "gpt_oss",
        24,
        attention_bias=True,
        experts_per_token=4,
        layer_types=["sliding_attention", "full_attention"] * 12,
        num_experts_per_tok=4,
        num_local_experts=32,
        quantization_config={"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
        rope_scaling=YARN,
        rope_theta=150000,
        sliding_window=128,
    )
    return automodel(drafter, target, facts={"rope_theta": 150000, "rope_scaling": YARN})


def _mla() -> Source:
    """A DeepSeek-V3 target: vLLM would take a drafter of that model type for an MTP head."""
    drafter = Drafter(embed=True, mla=True)
    target = _target(
        drafter,
        "deepseek_v3",
        61,
        head_dim=drafter.rope,
        kv_lora_rank=drafter.kv_lora,
        moe_layer_freq=1,
        n_routed_experts=256,
        num_experts_per_tok=8,
        num_key_value_heads=drafter.heads,
        num_nextn_predict_layers=1,
        q_lora_rank=drafter.q_lora,
        qk_nope_head_dim=drafter.nope,
        qk_rope_head_dim=drafter.rope,
        rope_theta=10000.0,
        v_head_dim=drafter.v_head,
    )
    return automodel(drafter, target)


def _qwen3(drafter: Drafter, keys: Config | None = None) -> Source:
    return automodel(drafter, qwen3_target(drafter), keys, facts={"rope_theta": 1000000.0} | (keys or {}))


def _p_eagle() -> Source:
    """Parallel drafting, the one recipe that sets the depth: its own two layers."""
    drafter = Drafter(embed=True, layers=2, mask_hidden=True)
    recipe = {"down_sample_ratio": 0.7, "num_depths": 8, "num_hidden_layers": 2, "parallel_drafting": True}
    return automodel(
        drafter,
        qwen3_target(drafter),
        recipe | {"mask_token_id": 159},
        facts={"rope_theta": 1000000.0, "mask_token_id": 159, "pard_token": 159},
    )


FIXTURES: Fixtures = {
    "automodel": lambda: _qwen3(Drafter(embed=True)),
    "automodel-legacy": lambda: replace(_qwen3(Drafter(embed=True)), weights="draft_model.pt"),
    "automodel-3.1": lambda: _qwen3(Drafter(embed=True, fc_norm=True), {"norm_output": True}),
    "automodel-sliding": _sliding,
    "automodel-mla": _mla,
    "automodel-peagle": _p_eagle,
}
