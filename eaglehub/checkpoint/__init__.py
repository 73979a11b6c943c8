"""Reading and writing checkpoints: folders of config.json and named tensors.

Reading headers needs no numpy; the writer, which does, is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.dtypes import dtype_name, itemsize, numpy_dtype
from eaglehub.checkpoint.header import TensorInfo
from eaglehub.checkpoint.jsonfile import parse_json_object, read_json_object
from eaglehub.checkpoint.reader import Checkpoint, open_checkpoint
from eaglehub.checkpoint.values import nonfinite

if TYPE_CHECKING:
    from eaglehub.checkpoint.writer import OutputTensor, write_checkpoint

__all__ = [
    "Checkpoint",
    "OutputTensor",
    "TensorInfo",
    "dtype_name",
    "itemsize",
    "nonfinite",
    "numpy_dtype",
    "open_checkpoint",
    "parse_json_object",
    "read_json_object",
    "write_checkpoint",
]


def __getattr__(name: str) -> Any:
    if name not in ("OutputTensor", "write_checkpoint"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eaglehub.checkpoint import writer

    return getattr(writer, name)
