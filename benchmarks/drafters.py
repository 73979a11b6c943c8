"""A SpecForge drafter of any size, for measuring."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from eaglehub.checkpoint import OutputTensor, itemsize, numpy_dtype, write_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HIDDEN, MLP, HEADS, HEAD_DIM = 2048, 4096, 16, 128
_TORCH_NAMES = {"BF16": "bfloat16", "F32": "float32"}
_BLOCK_ROWS = 512

_SHAPES: dict[str, tuple[int, ...]] = {
    "fc": (HIDDEN, 3 * HIDDEN),
    **{f"midlayer.self_attn.{side}_proj": (HEADS * HEAD_DIM, 2 * HIDDEN) for side in "qkv"},
    "midlayer.self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
    "midlayer.mlp.gate_proj": (MLP, HIDDEN),
    "midlayer.mlp.up_proj": (MLP, HIDDEN),
    "midlayer.mlp.down_proj": (HIDDEN, MLP),
    **{f"midlayer.{norm}": (HIDDEN,) for norm in ("input_layernorm", "hidden_norm", "post_attention_layernorm")},
    "norm": (HIDDEN,),
}


def make_drafter(folder: Path, nbytes: int, dtype: str) -> None:
    """Write a drafter of about `nbytes` bytes of finite random weights, most of them in its full-vocabulary head."""
    fixed = sum(int(np.prod(shape)) for shape in _SHAPES.values())
    vocab = max(HIDDEN, (nbytes // itemsize(dtype) - fixed) // HIDDEN)
    shapes = _SHAPES | {"lm_head": (vocab, HIDDEN)}
    tensors = [_noise(f"{name}.weight", dtype, shape) for name, shape in shapes.items()]
    tensors += [_constant("d2t", "I64", vocab, 0), _constant("t2d", "BOOL", vocab, 1)]
    write_checkpoint(folder, tensors, {"config.json": json.dumps(_config(vocab, dtype)).encode()})


def _config(vocab: int, dtype: str) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "num_hidden_layers": 1,
        "vocab_size": vocab,
        "draft_vocab_size": vocab,
        "rms_norm_eps": 1e-5,
        "torch_dtype": _TORCH_NAMES[dtype],
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 17, 33], "use_aux_hidden_state": True},
    }


def _noise(name: str, dtype: str, shape: tuple[int, ...]) -> OutputTensor:
    rows, columns = shape[0], shape[1:]
    block = np.random.default_rng(0).standard_normal((_BLOCK_ROWS, *columns), np.float32).astype(numpy_dtype(dtype))

    def blocks() -> Iterator[np.ndarray[Any, Any]]:
        for start in range(0, rows, _BLOCK_ROWS):
            yield block[: rows - start]

    return OutputTensor(name, dtype, shape, blocks)


def _constant(name: str, dtype: str, size: int, value: int) -> OutputTensor:
    return OutputTensor(name, dtype, (size,), lambda: iter([np.full(size, value, numpy_dtype(dtype))]))
