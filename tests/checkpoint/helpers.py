"""Checkpoints made in code for the tests of the checkpoint layer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from eaglehub.checkpoint import OutputTensor, dtype_name, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = b'{"architectures": ["LlamaForCausalLMEagle3"]}'
DTYPES = [
    *("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "I16", "U16", "F16", "BF16"),
    *("I32", "U32", "F32", "C64", "F64", "I64", "U64"),
]


def values(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Random finite values of any type."""
    noise = np.random.default_rng(seed).integers(0, 2 if dtype == "BOOL" else 100, shape)
    return np.asarray(noise).astype(numpy_dtype(dtype))


def output(name: str, array: np.ndarray, rows: int | None = None) -> OutputTensor:
    """An output tensor that gives `array`, in blocks of `rows` when given."""

    def chunks() -> Iterator[np.ndarray]:
        yield from np.split(array, range(rows, len(array), rows)) if rows else [array]

    return OutputTensor(name, dtype_name(array.dtype), array.shape, chunks)


def raw_safetensors(header: Any, data: bytes = b"") -> bytes:
    """A safetensors file with the header as given, well-formed or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def litter(folder: Path, *expected: str) -> list[str]:
    """What is in a folder besides `expected`."""
    return sorted({entry.name for entry in folder.iterdir()} - set(expected))
