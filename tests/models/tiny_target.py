"""A target of random weights with a tokenizer, and drafters that fit it: good for nothing but mechanics."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from eaglehub.drafter.native import native_config
from examples.tiny.targets import make_tokenizer

from .build import describe, random_model

if TYPE_CHECKING:
    from pathlib import Path

    from eaglehub.drafter.drafter import Drafter

LAYERS, HIDDEN, VOCAB = 5, 64, 512
IDS = (1, 3, 5)
_NAMES = {
    "llama": ("LlamaForCausalLMEagle3", "llama"),
    "qwen3": ("Eagle3Qwen3ForCausalLM", "qwen3"),
    "mla": ("Eagle3DeepseekV2ForCausalLM", "deepseek_v2"),
}


def write_target(folder: Path, **changes: Any) -> Path:
    """A llama with a tokenizer of its own, whose vocabulary is padded up."""
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    settings = {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": 96,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "initializer_range": 0.3,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": 0,
        "pad_token_id": 0,
    }
    LlamaForCausalLM(LlamaConfig(**(settings | changes))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def fitting(architecture: str = "llama", **changes: Any) -> Drafter:
    """A description that fits the target."""
    sizes = {"hidden_size": HIDDEN, "target_hidden_size": HIDDEN, "vocab_size": VOCAB, "draft_vocab_size": 200}
    return describe(architecture, **(sizes | {"aux_layer_ids": IDS, "embedding": False} | changes))


def write_drafter(folder: Path, drafter: Drafter, dtype: torch.dtype = torch.float32) -> Path:
    """A drafter of random weights, in vLLM's layout."""
    folder.mkdir(parents=True)
    model = random_model(replace(drafter, embedding=True, head=True))
    shared = {"embed_tokens.weight": drafter.embedding, "lm_head.weight": drafter.head}
    tensors = {name: tensor for name, tensor in model.state_dict().items() if shared.get(name, True)}
    cast = {name: each if name == "d2t" else each.to(dtype) for name, each in tensors.items()}
    save_file({name: each.contiguous() for name, each in cast.items()}, folder / "model.safetensors")
    architecture, model_type = _NAMES[drafter.architecture]
    config = native_config(drafter) | {"architectures": [architecture], "model_type": model_type}
    config["torch_dtype"] = str(dtype).removeprefix("torch.")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def write_prompts(file: Path, count: int = 6) -> Path:
    """Questions of different lengths."""
    questions = ["Where does the fox go at noon? " * (number % 3 + 1) for number in range(count)]
    lines = [json.dumps({"messages": [{"role": "user", "content": question}]}) for question in questions]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file
