"""From 8-bit weights with scales beside them to ordinary ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from eaglehub.checkpoint import numpy_dtype
from eaglehub.drafter.tensors import is_scale
from eaglehub.errors import UnusableInput
from eaglehub.plan.operations import SameForm
from eaglehub.reading.weights import read_weights
from eaglehub.upgrade.rewrite import Rewritten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.plan.plan import TensorStep

_EIGHT_BITS = ("F8_E4M3", "F8_E5M2", "I8")
_SCALES = ("weight_scale", "weight_scale_inv")


@dataclass(frozen=True, eq=False)
class Dequantize(SameForm):
    """Multiply by scales: one for all, one a row, or one a block of rows and columns; rounded once."""

    scales: np.ndarray
    target: str

    def dtype(self, dtype: str) -> str:  # noqa: ARG002
        """The target's."""
        return self.target

    def apply(self, array: np.ndarray) -> np.ndarray:
        """The weights [rows, columns]."""
        factors = self.scales.astype(np.float32).reshape(len(self.scales) if self.scales.ndim else 1, -1)
        for axis, size in enumerate(array.shape):
            repeats = -(-size // factors.shape[axis])
            factors = np.take(np.repeat(factors, repeats, axis), np.arange(size), axis)
        weights: np.ndarray = (array.astype(np.float32) * factors).astype(numpy_dtype(self.target))
        return weights

    def describe(self) -> str:
        """With a digest of the scales."""
        digest = hashlib.sha256(np.ascontiguousarray(self.scales).tobytes()).hexdigest()
        return f"dequantised to {self.target} ({digest[:12]})"


def dequantize(source: Rewritten, checkpoint: Checkpoint) -> Rewritten:
    """The drafter with ordinary weights; scale tensors and the quantisation config are gone.

    Raises:
        UnusableInput: a weight is packed, or its scales are of a kind that is not known.
    """
    drafter = source.drafter
    steps = {
        name: _dequantized(step, source.steps, checkpoint, drafter.dtype)
        for name, step in source.steps.items()
        if not is_scale(name) or name.endswith("weight_packed")
    }
    extra = {key: value for key, value in drafter.extra.items() if key != "quantization_config"}
    return Rewritten(replace(drafter, quantized=False, extra=extra), steps)


def _dequantized(step: TensorStep, tensors: Mapping[str, TensorStep], checkpoint: Checkpoint, dtype: str) -> TensorStep:
    module = step.name.rpartition(".")[0]
    scales = [tensors[name] for suffix in _SCALES if (name := f"{module}.{suffix}") in tensors]
    if step.name != f"{module}.weight" or not scales:
        if step.name.endswith("weight_packed"):
            raise UnusableInput("is packed in less than 8 bits", where=step.name, fix="dequantise it with its own tool")
        return step
    if step.dtype not in _EIGHT_BITS or len(scales) > 1 or f"{module}.weight_zero_point" in tensors:
        raise UnusableInput(
            "is quantised in a way that is not known", where=step.name, fix="dequantise it with its own tool"
        )
    (values,) = read_weights(checkpoint, scales).values()
    return step.then(Dequantize(values, dtype))
