"""Looking at values without converting them: floats are scanned as the integers they are stored as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.dtypes import dtype_name

if TYPE_CHECKING:
    import numpy.typing as npt

# As integers, the infinities and NaNs of one sign are the largest magnitudes: the first code of each sign's run.
_FIRST_NONFINITE = {
    "F8_E5M2": 0x7C,
    "F8_E4M3": 0x7F,
    "F16": 0x7C00,
    "BF16": 0x7F80,
    "F32": 0x7F80_0000,
    "F64": 0x7FF0_0000_0000_0000,
}
# These types have no infinity and a single NaN.
_ONLY_NAN = {"F8_E8M0": 0xFF, "F8_E4M3FNUZ": 0x80, "F8_E5M2FNUZ": 0x80}


def nonfinite(values: npt.NDArray[Any]) -> bool:
    """Whether any element is NaN or infinite; False for integers and booleans.

    Costs two reductions over the bytes and allocates nothing when `values` is contiguous.
    """
    import numpy as np

    if values.size == 0:
        return False
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype == np.complex64:
        flat = flat.view(np.float32)
    name = dtype_name(flat.dtype)
    if name in _ONLY_NAN:
        return bool((flat.view(np.uint8) == _ONLY_NAN[name]).any())
    if name not in _FIRST_NONFINITE:
        return False
    bits = 8 * flat.itemsize
    first = _FIRST_NONFINITE[name]
    # Signed, the negative half sorts below every positive code; unsigned, above it: each maximum sees one sign.
    return bool(flat.view(f"i{bits // 8}").max() >= first) or bool(
        flat.view(f"u{bits // 8}").max() >= first + 2 ** (bits - 1)
    )
