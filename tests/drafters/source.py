"""What a fixture is before it is written, what must become of it, and the writer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

if TYPE_CHECKING:
    from pathlib import Path

    from .drafter import Array, Config, Drafter, Tensors

NEVER_WRITTEN = (
    "layer_types",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "quantization_config",
    "auto_map",
    "num_nextn_predict_layers",
    "speculators_config",
    "transformer_layer_config",
    "use_aux_norm",
    "eagle_config.eagle_aux_hidden_state_layer_ids",
)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the conversion to vLLM's layout must give, derived from the producers' own definitions.

    Attributes:
        producer: id of the format that detection must find.
        config: facts that the converted config.json holds (a subset).
        absent: dotted config paths that it does not hold.
        tensors: canonical name to exact values.
        optional: tensors that may be written besides, and the only values they may have.
        dropped: source tensors left behind on purpose.
        options: CLI options that settle what the checkpoint does not say.
        target: kind of `target_config` that settles it in place of the options.
        refused_without_options: exit 1 until told.
        warns: keywords of the warnings that must be raised.
    """

    producer: str
    config: Config
    absent: tuple[str, ...]
    tensors: Tensors
    optional: Tensors
    dropped: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    target: str | None = None
    refused_without_options: bool = False
    warns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Source:
    """A checkpoint as its producer writes it; `expected` is None when it must be refused.

    `weights` is the file written: `model.safetensors` (in `shards` parts) or a pickle.
    """

    config: Config
    tensors: Tensors
    expected: Expected | None = None
    weights: str = "model.safetensors"
    shards: int = 1
    metadata: dict[str, str] = field(default_factory=lambda: {"format": "pt"})
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """A checkpoint on disk."""

    path: Path
    config: Config
    tensors: Tensors
    expected: Expected | None


Fixtures: TypeAlias = dict[str, Callable[[], Source]]


def expect(
    drafter: Drafter,
    producer: str,
    facts: Config | None = None,
    *,
    ids: list[int] | None = None,
    absent: tuple[str, ...] = (),
    **rest: Any,
) -> Expected:
    """The expectation for `drafter`: its own facts, then `facts`, and `ids` (IN convention) or none written."""
    ids_key = "eagle_aux_hidden_state_layer_ids"
    tensors = drafter.weights()
    twins = {
        f"layers.{i}.hidden_norm.weight": tensors[f"layers.{i}.input_layernorm.weight"]
        for i in range(1, drafter.layers)
    }
    return Expected(
        producer=producer,
        config=drafter.facts() | (facts or {}) | ({} if ids is None else {ids_key: ids}),
        absent=NEVER_WRITTEN + absent + ((ids_key,) if ids is None else ()),
        tensors=tensors,
        optional=twins | ({"t2d": drafter.t2d()} if drafter.pruned else {}),
        **rest,
    )


def write(source: Source, folder: Path) -> Built:
    """Write the checkpoint into `folder`, which may not exist yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"config.json": json.dumps(source.config, indent=2), **source.files}.items():
        (folder / name).write_text(text, encoding="utf-8")
    tensors = {name: np.ascontiguousarray(array) for name, array in source.tensors.items()}
    if not source.weights.endswith(".safetensors"):
        _write_pickle(tensors, folder / source.weights)
    elif source.shards > 1:
        _write_shards(tensors, source, folder)
    else:
        save_file(tensors, folder / source.weights, metadata=source.metadata)
    return Built(folder, source.config, source.tensors, source.expected)


def _write_shards(tensors: Tensors, source: Source, folder: Path) -> None:
    names = sorted(tensors)
    parts = [names[start :: source.shards] for start in range(source.shards)]
    weight_map: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        file = f"model-{number:05d}-of-{source.shards:05d}.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file, metadata=source.metadata)
        weight_map |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": sum(array.nbytes for array in tensors.values())}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2), encoding="utf-8")


def _write_pickle(tensors: Tensors, path: Path) -> None:
    import torch

    def to_torch(array: Array) -> torch.Tensor:
        if array.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
        return torch.from_numpy(array.copy())

    torch.save({name: to_torch(array) for name, array in tensors.items()}, path)
