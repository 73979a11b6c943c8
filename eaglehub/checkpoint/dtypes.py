"""The element types of the safetensors format and their numpy counterparts."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    import numpy as np

# Name in numpy or ml_dtypes, and bytes of an element. In the order by which the official library sorts tensors in a
# file (wide types last here, first in the file), so that what is written here is byte for byte what that library would
# have written.
_TYPES: dict[str, tuple[str, int]] = {
    "BOOL": ("bool", 1),
    "U8": ("uint8", 1),
    "I8": ("int8", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E8M0": ("float8_e8m0fnu", 1),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 1),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 1),
    "I16": ("int16", 2),
    "U16": ("uint16", 2),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "I32": ("int32", 4),
    "U32": ("uint32", 4),
    "F32": ("float32", 4),
    "C64": ("complex64", 8),
    "F64": ("float64", 8),
    "I64": ("int64", 8),
    "U64": ("uint64", 8),
}
RANK = {name: rank for rank, name in enumerate(_TYPES)}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of a safetensors type name such as `BF16`.

    Raises:
        UnusableInput: the name is unknown (or a sub-byte type, which no drafter uses).
    """
    return _numpy_dtypes()[_known(name)]


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The safetensors name of a numpy type.

    Raises:
        UnusableInput: safetensors cannot store it.
    """
    try:
        return _names()[dtype]
    except KeyError:
        raise UnusableInput(f"safetensors cannot store the type {dtype}") from None


def itemsize(name: str) -> int:
    """Bytes of one element of the safetensors type `name`.

    Raises:
        UnusableInput: the name is unknown.
    """
    return _TYPES[_known(name)][1]


def _known(name: str) -> str:
    if name not in _TYPES:
        raise UnusableInput(f"unknown tensor type {name!r}", fix=f"known: {', '.join(_TYPES)}")
    return name


@cache
def _numpy_dtypes() -> dict[str, np.dtype[Any]]:
    """Imported late: headers are read without numpy."""
    import ml_dtypes
    import numpy as np

    return {name: np.dtype(getattr(ml_dtypes, attribute, attribute)) for name, (attribute, _) in _TYPES.items()}


@cache
def _names() -> dict[np.dtype[Any], str]:
    return {dtype: name for name, dtype in _numpy_dtypes().items()}
