"""Differences between the tensors of two checkpoints, read in chunks: memory does not grow with their size."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from eaglehub.checkpoint import Checkpoint, TensorInfo

Array = np.ndarray[Any, Any]
Advance = Callable[[int], None]

_PIECE = 1 << 18  # elements compared at once: what a core's cache holds


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """How far two tensors of one shape are apart.

    Attributes:
        max_abs: largest absolute difference, None when one of the differing values is not finite.
        share: fraction of the elements that differ, in [0, 1]; in bits when the dtypes are equal, else in value.
    """

    max_abs: float | None
    share: float


@dataclass(frozen=True, slots=True)
class TensorChange:
    """A tensor both checkpoints have, with another dtype, shape or value; `values` is None when not compared."""

    before: TensorInfo
    after: TensorInfo
    values: ValueDifference | None


@dataclass(frozen=True, slots=True)
class TensorDiff:
    """Tensors that differ, and how many do not.

    Attributes:
        renamed: pairs of names only one side has, equal in dtype, shape and bytes.
        not_compared: tensors of equal dtype and shape, in files that differ, whose values were not read.
    """

    added: tuple[TensorInfo, ...]
    removed: tuple[TensorInfo, ...]
    renamed: tuple[tuple[TensorInfo, TensorInfo], ...]
    changed: tuple[TensorChange, ...]
    same: int
    not_compared: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.renamed or self.changed or self.not_compared)


def bytes_to_compare(before: Checkpoint, after: Checkpoint) -> int:
    """How many bytes `diff_tensors` reads: the same-shaped pairs, and the names that may have been renamed."""
    if before.headers_only or after.headers_only:
        return 0
    pairs = [(old, after.tensors[name]) for name, old in before.tensors.items() if name in after.tensors]
    compared = sum(old.nbytes + new.nbytes for old, new in pairs if old.shape == new.shape)
    removed, added = _unmatched(before, after), _unmatched(after, before)
    return compared + sum(info.nbytes for info in (*_alike(removed, added), *_alike(added, removed)))


def diff_tensors(before: Checkpoint, after: Checkpoint, advance: Advance) -> TensorDiff:
    """Compare every tensor; `advance` hears of each chunk's bytes.

    Where one side's weights are too far away to be read, the files' digests say which tensors are the same.

    Raises:
        UnusableInput: weights cannot be read.
    """
    if before.headers_only or after.headers_only:
        return _diff_headers(before, after)
    shared = [name for name in before.tensors if name in after.tensors]
    changes = [change for name in shared if (change := _compare(before, after, name, advance))]
    removed, added = _unmatched(before, after), _unmatched(after, before)
    renamed = _renamed(before, after, _alike(removed, added), _alike(added, removed), advance)
    old_names, new_names = {old.name for old, _ in renamed}, {new.name for _, new in renamed}
    return TensorDiff(
        added=tuple(info for info in added if info.name not in new_names),
        removed=tuple(info for info in removed if info.name not in old_names),
        renamed=tuple(renamed),
        changed=tuple(changes),
        same=len(shared) - len(changes),
    )


def _diff_headers(before: Checkpoint, after: Checkpoint) -> TensorDiff:
    pairs = [(old, after.tensors[name]) for name, old in before.tensors.items() if name in after.tensors]
    alike = [(old, new) for old, new in pairs if (old.dtype, old.shape) == (new.dtype, new.shape)]
    hashes = {file: after.sha256(file) for file in after.weight_files}
    equal = {(file, other) for file in before.weight_files for other in hashes if before.sha256(file) == hashes[other]}
    same = sum((old.file, new.file) in equal for old, new in alike)
    return TensorDiff(
        added=tuple(_unmatched(after, before)),
        removed=tuple(_unmatched(before, after)),
        renamed=(),
        changed=tuple(TensorChange(*pair, values=None) for pair in pairs if pair not in alike),
        same=same,
        not_compared=len(alike) - same,
    )


def _unmatched(one: Checkpoint, other: Checkpoint) -> list[TensorInfo]:
    return [info for name, info in one.tensors.items() if name not in other.tensors]


def _alike(infos: Iterable[TensorInfo], others: Iterable[TensorInfo]) -> list[TensorInfo]:
    """Those that some tensor of the other side could be, by dtype and shape."""
    kinds = {(info.dtype, info.shape) for info in others}
    return [info for info in infos if (info.dtype, info.shape) in kinds]


def _compare(before: Checkpoint, after: Checkpoint, name: str, advance: Advance) -> TensorChange | None:
    old, new = before.tensors[name], after.tensors[name]
    if old.shape != new.shape:
        return TensorChange(old, new, values=None)
    differing, worst = 0, 0.0
    for left, right in _aligned(before.chunks(name), after.chunks(name)):
        distances = _distances(left, right)
        differing += distances.size
        worst = max(worst, float(distances.max(initial=0.0)))
        advance(left.nbytes + right.nbytes)
    if not differing and old.dtype == new.dtype:
        return None
    values = ValueDifference(worst if np.isfinite(worst) else None, differing / max(1, old.size))
    return TensorChange(old, new, values)


def _aligned(left: Iterator[Array], right: Iterator[Array]) -> Iterator[tuple[Array, Array]]:
    """Flat pieces of equal length, `_PIECE` at most, from two streams that may be cut at different places."""
    one = other = np.empty(0)
    while True:
        one = one if one.size else _next_piece(left)
        other = other if other.size else _next_piece(right)
        length = min(one.size, other.size, _PIECE)
        if not length:
            return
        yield one[:length], other[:length]
        one, other = one[length:], other[length:]


def _next_piece(chunks: Iterator[Array]) -> Array:
    return next((chunk.reshape(-1) for chunk in chunks if chunk.size), np.empty(0))


def _distances(left: Array, right: Array) -> Array:
    """Absolute differences of the elements that differ, infinite where one of the two is not finite.

    In float64: exact for every float dtype and for integers up to 2**53.
    """
    if left.dtype == right.dtype:
        apart = _bits(left) != _bits(right)
        if not apart.any():
            return np.empty(0)
        left, right = left[apart], right[apart]
    with np.errstate(invalid="ignore", over="ignore"):
        one, other = left.astype(np.float64), right.astype(np.float64)
        distances: Array = np.abs(one - other)
    if left.dtype != right.dtype:
        apart = (one != other) & ~(np.isnan(one) & np.isnan(other))
        distances = distances[apart]
    distances[np.isnan(distances)] = np.inf
    return distances


def _bits(values: Array) -> Array:
    bits: Array = values.view(f"u{values.dtype.itemsize}")
    return bits


def _renamed(
    before: Checkpoint, after: Checkpoint, removed: list[TensorInfo], added: list[TensorInfo], advance: Advance
) -> list[tuple[TensorInfo, TensorInfo]]:
    """Pair tensors of equal dtype, shape and bytes; among several, the one whose name ends most alike."""
    candidates: dict[tuple[str, tuple[int, ...], bytes], list[TensorInfo]] = defaultdict(list)
    for info in added:
        candidates[info.dtype, info.shape, _digest(after, info, advance)].append(info)
    pairs = []
    for old in removed:
        equal = candidates[old.dtype, old.shape, _digest(before, old, advance)]
        if equal:
            new = _most_alike(old, equal)
            equal.remove(new)
            pairs.append((old, new))
    return pairs


def _digest(checkpoint: Checkpoint, info: TensorInfo, advance: Advance) -> bytes:
    digest = hashlib.sha256()
    for chunk in checkpoint.chunks(info.name):
        digest.update(_bits(chunk.reshape(-1)).data)
        advance(chunk.nbytes)
    return digest.digest()


def _most_alike(old: TensorInfo, candidates: Collection[TensorInfo]) -> TensorInfo:
    return max(candidates, key=lambda new: _common_ending(old.name, new.name))


def _common_ending(one: str, other: str) -> int:
    """How many characters both names end with."""
    letters = zip(reversed(one), reversed(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], letters))
