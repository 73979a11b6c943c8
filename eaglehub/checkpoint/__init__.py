"""Reading and writing checkpoints: folders of config.json and named tensors."""

from __future__ import annotations

from eaglehub.checkpoint.dtypes import dtype_name, itemsize, numpy_dtype
from eaglehub.checkpoint.header import TensorInfo
from eaglehub.checkpoint.jsonfile import parse_json_object, read_json_object
from eaglehub.checkpoint.reader import Checkpoint, open_checkpoint
from eaglehub.checkpoint.values import nonfinite
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
