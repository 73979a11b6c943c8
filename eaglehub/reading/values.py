"""The numbers of one tensor, looked at block by block as they go by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.checkpoint import nonfinite
from eaglehub.drafter.tensors import is_scale

if TYPE_CHECKING:
    import numpy as np

_MAY_BE_ZERO = ("d2t", "t2d", "mask_hidden", ".bias")


class ValueScan:
    """Takes a tensor's blocks in turn and tells what is wrong with them.

    Args:
        name: the tensor's name; vocabulary maps, biases and scales may be constant.
        shape: of the whole tensor.
    """

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name = name
        self._matrix = len(shape) > 1
        self._first: np.generic | None = None
        self._constant = not name.endswith(_MAY_BE_ZERO) and not is_scale(name)
        self._elements = 0
        self.broken = False

    def see(self, block: np.ndarray) -> None:
        """Look at the next block."""
        self.broken = self.broken or nonfinite(block)
        self._elements += block.size
        if self._constant and block.size:
            self._first = block.flat[0] if self._first is None else self._first
            # The last element settles it for nearly every real weight.
            self._constant = bool(block.flat[-1] == self._first) and bool((block == self._first).all())

    def fault(self) -> tuple[str, str] | None:
        """Code and message of what was seen, None when all is well."""
        if self.broken:
            return "EH501", f"{self.name} holds NaN or infinity"
        if not self._constant or self._elements < 2:
            return None
        if self._first == 0:
            return "EH502", f"{self.name} is all zero"
        return ("EH503", f"every element of {self.name} is {float(self._first or 0):g}") if self._matrix else None
