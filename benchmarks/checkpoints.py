"""Checkpoints for measuring, and the work that is measured: copy or cast everything, with every safeguard on."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from eaglehub.checkpoint import OutputTensor, nonfinite, numpy_dtype, open_checkpoint, write_checkpoint
from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

_COLUMNS = 4096
_TENSORS = 8
_BLOCK_ROWS = 512


def make_checkpoint(folder: Path, nbytes: int, dtype: str) -> None:
    """Write a checkpoint of about `nbytes` bytes of finite random weights."""
    rows = nbytes // (_TENSORS * _COLUMNS * numpy_dtype(dtype).itemsize)
    noise = np.random.default_rng(0).standard_normal((_BLOCK_ROWS, _COLUMNS), np.float32).astype(numpy_dtype(dtype))

    def blocks() -> Iterator[npt.NDArray[Any]]:
        for start in range(0, rows, _BLOCK_ROWS):
            yield noise[: rows - start]

    tensors = [OutputTensor(f"layers.{i}.weight", dtype, (rows, _COLUMNS), blocks) for i in range(_TENSORS)]
    write_checkpoint(folder, tensors, {"config.json": b"{}"})


def copy_checkpoint(source: Path, destination: Path, dtype: str) -> None:
    """Rename every tensor, cast it to `dtype`, hash the source meanwhile, and refuse NaN."""
    checkpoint = open_checkpoint(source)
    target = numpy_dtype(dtype)

    def chunks(name: str) -> Iterator[npt.NDArray[Any]]:
        return (block.astype(target, copy=False) for block in checkpoint.chunks(name))

    def refuse_nonfinite(name: str, chunk: npt.NDArray[Any]) -> None:
        if nonfinite(chunk):
            raise UnusableInput("holds NaN or infinity", where=name)

    with ThreadPoolExecutor(1) as pool:
        hashes = pool.submit(checkpoint.hash_files)
        write_checkpoint(
            destination,
            [
                OutputTensor(f"renamed.{info.name}", dtype, info.shape, lambda name=info.name: chunks(name))
                for info in checkpoint.tensors.values()
            ],
            {"config.json": checkpoint.config_bytes},
            late_files=lambda: {"eaglehub.json": json.dumps(hashes.result()).encode()},
            watch=refuse_nonfinite,
        )
