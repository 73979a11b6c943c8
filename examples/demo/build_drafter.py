"""Write a small EAGLE-3 drafter as SpecForge exports one: random weights, but every name, flag and trap is real.

Usage: python build_drafter.py OUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from ml_dtypes import bfloat16
from safetensors.numpy import save_file

HIDDEN, MLP, HEADS, KV_HEADS, HEAD_DIM, VOCAB, DRAFT_VOCAB = 256, 512, 4, 2, 64, 4096, 1024

CONFIG = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": MLP,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "num_hidden_layers": 1,
    "vocab_size": VOCAB,
    "draft_vocab_size": DRAFT_VOCAB,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    # The trap: SpecForge counts a layer's output, vLLM its input, so vLLM would read these one layer too shallow.
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 8], "use_aux_hidden_state": True},
}

SHAPES = {
    "fc": (HIDDEN, 3 * HIDDEN),
    "midlayer.self_attn.q_proj": (HEADS * HEAD_DIM, 2 * HIDDEN),
    "midlayer.self_attn.k_proj": (KV_HEADS * HEAD_DIM, 2 * HIDDEN),
    "midlayer.self_attn.v_proj": (KV_HEADS * HEAD_DIM, 2 * HIDDEN),
    "midlayer.self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
    "midlayer.mlp.gate_proj": (MLP, HIDDEN),
    "midlayer.mlp.up_proj": (MLP, HIDDEN),
    "midlayer.mlp.down_proj": (HIDDEN, MLP),
    "midlayer.input_layernorm": (HIDDEN,),
    "midlayer.hidden_norm": (HIDDEN,),
    "midlayer.post_attention_layernorm": (HIDDEN,),
    "norm": (HIDDEN,),
    "lm_head": (DRAFT_VOCAB, HIDDEN),
}


def main(folder: Path) -> None:
    """Write config.json and model.safetensors."""
    rng = np.random.default_rng(0)
    tensors = {f"{name}.weight": rng.normal(0, 0.02, shape).astype(bfloat16) for name, shape in SHAPES.items()}
    target_ids = np.sort(rng.choice(VOCAB, DRAFT_VOCAB, replace=False))
    tensors["d2t"] = target_ids - np.arange(DRAFT_VOCAB)
    tensors["t2d"] = np.isin(np.arange(VOCAB), target_ids)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
