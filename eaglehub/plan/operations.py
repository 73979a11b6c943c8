"""What can be done to a tensor on its way: small immutable operations, each with its shape rule."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from eaglehub.checkpoint import numpy_dtype

if TYPE_CHECKING:
    import numpy as np

Shape = tuple[int, ...]


class Operation(Protocol):
    """One step of a tensor's way from source to output."""

    def by_rows(self, shape: Shape) -> bool:
        """Whether blocks of rows (the first axis) can be treated one by one, so that any size streams."""

    def shape(self, shape: Shape) -> Shape:
        """Shape of the result for an input of this shape."""

    def dtype(self, dtype: str) -> str:
        """Dtype name of the result for an input of this dtype."""

    def apply(self, array: np.ndarray) -> np.ndarray:
        """The result, for a block of rows or the whole tensor."""

    def describe(self) -> str:
        """One short phrase for the plan."""


class SameForm:
    """Defaults of an operation that changes neither shape nor dtype and needs the whole tensor."""

    def by_rows(self, shape: Shape) -> bool:  # noqa: ARG002
        """Never: a block of rows does not know its place."""
        return False

    def shape(self, shape: Shape) -> Shape:
        """Unchanged."""
        return shape

    def dtype(self, dtype: str) -> str:
        """Unchanged."""
        return dtype


@dataclass(frozen=True)
class Cast(SameForm):
    """Change the dtype, rounding to nearest even."""

    target: str

    def by_rows(self, shape: Shape) -> bool:  # noqa: ARG002
        """Always: it is elementwise."""
        return True

    def dtype(self, dtype: str) -> str:  # noqa: ARG002
        """The cast's target."""
        return self.target

    def apply(self, array: np.ndarray) -> np.ndarray:
        """The rounded values; what does not fit becomes infinite and is refused when written."""
        import numpy as np

        with np.errstate(over="ignore"):
            return array.astype(numpy_dtype(self.target))

    def describe(self) -> str:
        """The target."""
        return f"cast to {self.target}"


@dataclass(frozen=True)
class PermuteBlocks(SameForm):
    """Reorder equal blocks along the last axis: output block i is input block `order[i]`.

    The last axis holds one block an aux hidden state, so unsorted layer ids are put right by this.
    """

    order: tuple[int, ...]

    def by_rows(self, shape: Shape) -> bool:
        """A matrix's rows are independent; a vector has only the one axis."""
        return len(shape) > 1

    def apply(self, array: np.ndarray) -> np.ndarray:
        """Blocks moved within each row."""
        blocks = array.reshape(*array.shape[:-1], len(self.order), -1)
        return blocks[..., list(self.order), :].reshape(array.shape)

    def describe(self) -> str:
        """The order."""
        return f"reorder column blocks to {list(self.order)}"


@dataclass(frozen=True)
class Scale(SameForm):
    """Multiply along the last axis by factors (a single one counts for all), in float64, rounded once.

    `why` says what they are; it stands in the plan together with a digest of the factors.
    """

    factors: tuple[float, ...]
    why: str

    def by_rows(self, shape: Shape) -> bool:
        """A matrix's rows are independent; a vector has only the one axis."""
        return len(shape) > 1

    def apply(self, array: np.ndarray) -> np.ndarray:
        """The scaled values in the array's own dtype."""
        import numpy as np

        scaled: np.ndarray = (array.astype(np.float64) * np.array(self.factors)).astype(array.dtype)
        return scaled

    def describe(self) -> str:
        """The single factor, or a digest of all."""
        if len(self.factors) == 1:
            return f"times {self.factors[0]:g}, {self.why}"
        digest = hashlib.sha256(json.dumps(self.factors).encode()).hexdigest()
        return f"columns times {self.why} ({digest[:12]})"


@dataclass(frozen=True)
class TakeBlock(SameForm):
    """One of `count` equal blocks along the last axis: the part of a norm over all aux states that concerns one."""

    number: int
    count: int

    def shape(self, shape: Shape) -> Shape:
        """The last axis divided by `count`."""
        return (*shape[:-1], shape[-1] // self.count)

    def apply(self, array: np.ndarray) -> np.ndarray:
        """The block."""
        blocks = array.reshape(*array.shape[:-1], self.count, -1)
        return blocks[..., self.number, :]

    def describe(self) -> str:
        """Which block."""
        return f"block {self.number} of {self.count}"


@dataclass(frozen=True)
class OffsetsFromIds(SameForm):
    """`d2t` from absolute target ids to the offsets (target id minus draft id) that vLLM adds."""

    def apply(self, array: np.ndarray) -> np.ndarray:
        """`d2t[i] - i`."""
        import numpy as np

        offsets: np.ndarray = array - np.arange(array.shape[0], dtype=array.dtype)
        return offsets

    def describe(self) -> str:
        """What changes."""
        return "absolute ids to offsets"


@dataclass(frozen=True)
class MaskFromOffsets(SameForm):
    """`t2d` [V], true for the target ids in the draft vocabulary, from `d2t` offsets [Vd]."""

    vocab_size: int

    def shape(self, shape: Shape) -> Shape:  # noqa: ARG002
        """One entry a target id."""
        return (self.vocab_size,)

    def dtype(self, dtype: str) -> str:  # noqa: ARG002
        """Boolean."""
        return "BOOL"

    def apply(self, array: np.ndarray) -> np.ndarray:
        """True at `i + d2t[i]`."""
        import numpy as np

        mask = np.zeros(self.vocab_size, dtype=np.bool_)
        mask[array + np.arange(array.shape[0], dtype=array.dtype)] = True
        return mask

    def describe(self) -> str:
        """Where it comes from."""
        return "recomputed from d2t"
