"""SafeAILab/EAGLE and AngelSlim: flat configs without layer ids, which stand for the default ones."""

from __future__ import annotations

from typing import Any

from .configs import llama
from .drafter import Config, Drafter, midlayer, with_t2d
from .source import Fixtures, Source, expect


def safeailab(drafter: Drafter, keys: Config, *, weights: str = "model.safetensors", **expected: Any) -> Source:
    """EAGLE's own trainer: one `midlayer`, both maps only when the vocabulary is pruned, no `head_dim` key."""
    return Source(
        config=llama(drafter, "LlamaForCausalLM", transformers_version="4.28.1", num_hidden_layers=1) | keys,
        tensors=midlayer(with_t2d(drafter) if drafter.pruned else drafter.weights()),
        expected=expect(drafter, "safeailab", dropped=("t2d",) if drafter.pruned else (), **expected),
        weights=weights,
    )


def angelslim(drafter: Drafter, keys: Config, **expected: Any) -> Source:
    """AngelSlim's trainer: both maps always; it rotates with base 10000 whatever the config says."""
    template = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "head_dim": drafter.head_dim,
        "max_position_embeddings": 40960,
        "max_window_layers": 36,
        "rope_scaling": None,
        "rope_theta": 1000000,
        "sliding_window": None,
        "target_model_type": "qwen3",
        "use_sliding_window": False,
    }
    return Source(
        config=llama(drafter, "Eagle3LlamaForCausalLM") | template | keys,
        tensors=midlayer(with_t2d(drafter)),
        expected=expect(drafter, "angelslim", dropped=("t2d",), **expected),
    )


def _own_embedding() -> Source:
    """The 70B style: narrower than its target, so it cannot share the target's embedding."""
    keys = {"target_hidden_size": 96, "rope_theta": 500000.0}
    return safeailab(Drafter(target_hidden=96, embed=True), keys, facts=keys, warns=("rope",))


_MROPE = {"type": "default", "rope_type": "default", "mrope_interleaved": True, "mrope_section": [4, 2, 2]}
_VISION = {
    "modal_type": "VLM",
    "rope_scaling": _MROPE,
    "rope_theta": 5000000,
    "target_model_type": "qwen3_vl",
    "tie_word_embeddings": True,
}
_SPEECH = {
    "architectures": ["CosyVoice3Eagle3LlamaForCausalLM"],
    "modal_type": "TTS",
    "num_hidden_layers": 24,
    "sliding_window": 32768,
    "target_model_type": "cosyvoice3",
    "tie_word_embeddings": True,
}

FIXTURES: Fixtures = {
    "safeailab": lambda: safeailab(Drafter(dtype="float16"), {}, weights="pytorch_model.bin"),
    "safeailab-depth-40": lambda: safeailab(Drafter(dtype="float16"), {"num_hidden_layers": 40}),
    "safeailab-own-embedding": _own_embedding,
    "safeailab-full-vocab": lambda: safeailab(Drafter(draft_vocab=160), {}),
    "angelslim": lambda: angelslim(Drafter(), {}, facts={"rope_theta": 1000000.0}, warns=("rope",)),
    "angelslim-tied": lambda: angelslim(Drafter(embed=True), _SPEECH, facts={"rope_theta": 1000000.0}, warns=("rope",)),
    "angelslim-mrope": lambda: angelslim(
        Drafter(embed=True), _VISION, facts={"rope_theta": 5000000, "rope_scaling": _MROPE}
    ),
}
