"""Drafters that load and are of no use: what a verification is there to find."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import load_file, save_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Tensors = dict[str, np.ndarray[Any, np.dtype[Any]]]
Config = dict[str, Any]


def random_weights(config: Config, tensors: Tensors) -> None:
    """Every matrix drawn anew."""
    rng = np.random.default_rng(0)
    for name, tensor in tensors.items():
        if tensor.ndim == 2:
            tensors[name] = rng.normal(0, 0.02, tensor.shape).astype(tensor.dtype)


def shuffled_d2t(config: Config, tensors: Tensors) -> None:
    """The head's rows belong to other tokens than the map says; each is still in the vocabulary."""
    rows = np.arange(config["draft_vocab_size"])
    ids = np.random.default_rng(0).permutation(tensors["d2t"] + rows)
    tensors["d2t"] = ids - rows


def smaller_vocabulary(config: Config, tensors: Tensors) -> None:
    """Made for a target with fewer tokens: every id exists, and means something else."""
    _remap(config, tensors, 300)


def larger_vocabulary(config: Config, tensors: Tensors) -> None:
    """Made for a target with more tokens: most ids do not exist."""
    _remap(config, tensors, 2000)


def unset_fc_norm(config: Config, tensors: Tensors) -> None:
    """The config announces norms that the file has not."""
    for name in [name for name in tensors if name.startswith("fc_norm.")]:
        del tensors[name]


def shifted_layers(config: Config, tensors: Tensors) -> None:
    """Other states of the target than it was trained on."""
    config["eagle_aux_hidden_state_layer_ids"] = [layer - 1 for layer in config["eagle_aux_hidden_state_layer_ids"]]


def permuted_queries(config: Config, tensors: Tensors) -> None:
    """The rows of a projection in another order."""
    name = "layers.0.self_attn.q_proj.weight"
    tensors[name] = np.random.default_rng(0).permutation(tensors[name])


def flipped_norm_output(config: Config, tensors: Tensors) -> None:
    """Another state is fed back than it was trained on."""
    config["norm_output"] = not config["norm_output"]


def shifted_d2t(config: Config, tensors: Tensors) -> None:
    """Each row of the head has its neighbour's offset."""
    tensors["d2t"] = np.roll(tensors["d2t"], 1)


def random_embedding(config: Config, tensors: Tensors) -> None:
    """An embedding of its own, and of no use."""
    shape = (config["vocab_size"], config["hidden_size"])
    tensors["embed_tokens.weight"] = np.random.default_rng(0).normal(0, 0.1, shape).astype(np.float32)


def _remap(config: Config, tensors: Tensors, vocab: int) -> None:
    rows = np.arange(vocab // 2)
    config |= {"vocab_size": vocab, "draft_vocab_size": len(rows)}
    head = tensors["lm_head.weight"]
    tensors["lm_head.weight"] = np.resize(head, (len(rows), head.shape[1]))
    tensors["d2t"] = rows  # row i stands for the id 2i


DAMAGES: dict[str, Callable[[Config, Tensors], None]] = {
    damage.__name__: damage
    for damage in (
        random_weights,
        shuffled_d2t,
        smaller_vocabulary,
        larger_vocabulary,
        unset_fc_norm,
        shifted_layers,
        permuted_queries,
        flipped_norm_output,
        shifted_d2t,
        random_embedding,
    )
}


def damaged(name: str, drafter: Path, folder: Path) -> Path:
    """Write a copy of `drafter` with the damage of that name into `folder`."""
    config = json.loads((drafter / "config.json").read_text(encoding="utf-8"))
    tensors = load_file(drafter / "model.safetensors")
    DAMAGES[name](config, tensors)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
