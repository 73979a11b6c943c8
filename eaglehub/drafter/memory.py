"""What draft steps attend to: an engine's growing sequence, or the chains of all slots at once.

Queries are [B, heads, T, size], already scaled; keys and values [B, key heads, T, size].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

_BLOCK = 256
# exp(-60) is less than what rounding leaves of one, even in float64.
_NOTHING = 60.0


@dataclass(frozen=True, slots=True)
class Packing:
    """Documents side by side in one row; nothing attends from one to another.

    Attributes:
        lengths: positions of each document.
        slots: for each, runs of consecutive positions that drafts start from: one for each answer in it.
    """

    lengths: tuple[int, ...]
    slots: tuple[tuple[range, ...], ...]

    @property
    def positions(self) -> Tensor:
        """Each place's position in its own document, [sum of lengths]."""
        return torch.cat([torch.arange(length) for length in self.lengths])

    @property
    def places(self) -> Tensor:
        """The slots' places in the row, document by document."""
        starts = list(accumulate(self.lengths[:-1], initial=0))
        return torch.cat([starts[run.document] + torch.tensor(run.positions) for run in self.runs])

    @property
    def runs(self) -> list[Run]:
        """All runs of slots, document by document."""
        return [Run(number, positions) for number, own in enumerate(self.slots) for positions in own]


class Run(NamedTuple):
    """Consecutive positions of one document."""

    document: int
    positions: range


class Seen(NamedTuple):
    """Attention probabilities of consecutive slots at one layer and draft step.

    Attributes:
        depth: 0 for the first pass.
        first_slot: slot of the first row.
        context: how many of the columns are positions of the first pass; the rest are the slot's own draft steps.
        probabilities: [B, heads, rows, columns].
    """

    depth: int
    first_slot: int
    context: int
    probabilities: Tensor


Watch: TypeAlias = Callable[[Seen], None]


class Memory(Protocol):
    """Where a layer's keys and values go, and what comes back."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attended values [B, heads, T, size of values]; keys and values are remembered."""


class CausalMemory:
    """An engine's cache: every new position sees all before it and itself."""

    def __init__(self) -> None:
        self._past: dict[int, tuple[Tensor, Tensor]] = {}

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """As `Memory.attend`."""
        if layer in self._past:
            keys, values = self._past[layer]
            key, value = torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2)
        self._past[layer] = key, value
        new, whole = query.shape[2], key.shape[2]
        visible = torch.ones(new, whole, dtype=torch.bool, device=query.device).tril(whole - new)
        return functional.scaled_dot_product_attention(query, key, value, visible, scale=1.0, enable_gqa=True)


class ChainMemory:
    """The first pass over all positions, then one chain of draft steps for each slot.

    A slot's draft step sees the first pass of its document up to the slot, and the slot's own steps.
    """

    def __init__(self, packing: Packing, watch: Watch | None = None) -> None:
        self._packing, self._watch = packing, watch
        self._first: dict[int, list[_Pair]] = {}
        self._chains: dict[int, list[list[_Pair]]] = {}

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """As `Memory.attend`; the first call for a layer is its first pass."""
        query = query.unflatten(1, (key.shape[1], -1))
        if layer not in self._first:
            runs = [Run(number, range(length)) for number, length in enumerate(self._packing.lengths)]
            self._first[layer], self._chains[layer] = _by_run(key, value, runs), []
        else:
            runs = self._packing.runs
            self._chains[layer].append(_by_run(key, value, runs))
        attended = [
            block
            for number, own in enumerate(query.split([len(run.positions) for run in runs], dim=3))
            for block in self._run(layer, number, runs[number], own)
        ]
        return torch.cat(attended, dim=3).flatten(1, 2)

    def _run(self, layer: int, number: int, run: Run, query: Tensor) -> Iterator[Tensor]:
        """In blocks of slots, so that the scores of a long context never stand in memory all at once."""
        first, chain = self._first[layer][run.document], [step[number] for step in self._chains[layer]]
        for start in range(0, len(run.positions), _BLOCK):
            rows = slice(start, start + _BLOCK)
            own = [_Pair(key[:, :, None, rows], value[:, :, None, rows]) for key, value in chain]
            yield self._block(run.positions[rows], query[:, :, :, rows], first, own)

    def _block(self, slots: range, query: Tensor, first: _Pair, chain: Sequence[_Pair]) -> Tensor:
        context, count = slots.stop, len(slots)
        keys, values = (each[:, :, :context] for each in first)
        scores = (query.flatten(2, 3) @ keys.mT).unflatten(2, query.shape[2:4])
        own = [(query * key).sum(-1, keepdim=True) for key, _ in chain]
        scores = torch.cat([scores, *own], dim=-1)
        scores = scores.masked_fill(_unseen(scores.detach(), context, count), float("-inf"))
        shares = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(query.dtype)
        if self._watch:
            self._watch(Seen(len(chain), slots.start, context, shares.flatten(1, 2)))
        attended = (shares[..., :context].flatten(2, 3) @ values).unflatten(2, query.shape[2:4])
        for number, (_, value) in enumerate(chain):
            attended = attended + shares[..., context + number, None] * value
        return attended


def _unseen(scores: Tensor, context: int, count: int) -> Tensor:
    """Which scores [..., count, columns] do not count: those of later positions, and those as good as nothing.

    The latter's shares would be denormal numbers, with which a CPU computes many times slower.
    """
    later = torch.ones(count, context, dtype=torch.bool, device=scores.device).triu(context - count + 1)
    later = functional.pad(later, (0, scores.shape[-1] - context))
    seen = scores.masked_fill(later, float("-inf"))
    return seen < seen.amax(-1, keepdim=True) - _NOTHING


class _Pair(NamedTuple):
    key: Tensor
    value: Tensor


def _by_run(key: Tensor, value: Tensor, runs: Sequence[Run]) -> list[_Pair]:
    counts = [len(run.positions) for run in runs]
    return [_Pair(*pair) for pair in zip(key.split(counts, dim=2), value.split(counts, dim=2), strict=True)]
