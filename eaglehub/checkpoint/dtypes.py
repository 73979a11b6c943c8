"""The element types of the safetensors format and their numpy counterparts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from eaglehub.errors import UnusableInput

# In the order by which the official library sorts tensors in a file (wide types last here, first in the file), so that
# what is written here is byte for byte what that library would have written.
_NUMPY: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "I16": np.dtype(np.int16),
    "U16": np.dtype(np.uint16),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I32": np.dtype(np.int32),
    "U32": np.dtype(np.uint32),
    "F32": np.dtype(np.float32),
    "C64": np.dtype(np.complex64),
    "F64": np.dtype(np.float64),
    "I64": np.dtype(np.int64),
    "U64": np.dtype(np.uint64),
}
_NAMES = {dtype: name for name, dtype in _NUMPY.items()}
RANK = {name: rank for rank, name in enumerate(_NUMPY)}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of a safetensors type name such as `BF16`.

    Raises:
        UnusableInput: the name is unknown (or a sub-byte type, which no drafter uses).
    """
    try:
        return _NUMPY[name]
    except KeyError:
        raise UnusableInput(f"unknown tensor type {name!r}", fix=f"known: {', '.join(_NUMPY)}") from None


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The safetensors name of a numpy type.

    Raises:
        UnusableInput: safetensors cannot store it.
    """
    try:
        return _NAMES[dtype]
    except KeyError:
        raise UnusableInput(f"safetensors cannot store the type {dtype}") from None


def itemsize(name: str) -> int:
    """Bytes of one element of the safetensors type `name`."""
    return numpy_dtype(name).itemsize
