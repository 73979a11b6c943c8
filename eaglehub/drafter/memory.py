"""What draft steps attend to: an engine's growing sequence, or the chains of all slots at once.

Queries are [B, heads, T, size], already scaled; keys and values [B, key heads, T, size].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

_BLOCK = 256


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

    A slot's draft step sees the first pass up to the slot, and the slot's own steps.
    """

    def __init__(self, slots: range, watch: Watch | None = None) -> None:
        self._slots, self._watch = slots, watch
        self._first: dict[int, tuple[Tensor, Tensor]] = {}
        self._chains: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """As `Memory.attend`; the first call for a layer is its first pass."""
        if layer not in self._first:
            self._first[layer], self._chains[layer] = (key, value), []
            return self._attended(layer, query, 0)
        self._chains[layer].append((key, value))
        return self._attended(layer, query, self._slots.start)

    def _attended(self, layer: int, query: Tensor, first_slot: int) -> Tensor:
        """In blocks of slots, so that the scores of a long context never stand in memory all at once."""
        query = query.unflatten(1, (self._first[layer][0].shape[1], -1))
        rows = query.shape[3]
        blocks = [
            self._block(layer, query, slice(start, min(start + _BLOCK, rows)), first_slot)
            for start in range(0, rows, _BLOCK)
        ]
        return torch.cat(blocks, dim=3).flatten(1, 2)

    def _block(self, layer: int, query: Tensor, rows: slice, first_slot: int) -> Tensor:
        keys, values = self._first[layer]
        chain = [(key[:, :, None, rows], value[:, :, None, rows]) for key, value in self._chains[layer]]
        query = query[:, :, :, rows]
        context = first_slot + rows.stop
        scores = (query.flatten(2, 3) @ keys[:, :, :context].mT).unflatten(2, query.shape[2:4])
        count = query.shape[3]
        hidden = torch.ones(count, context, dtype=torch.bool, device=query.device).triu(context - count + 1)
        own = [(query * key).sum(-1, keepdim=True) for key, _ in chain]
        scores = torch.cat([scores.masked_fill(hidden, float("-inf")), *own], dim=-1)
        shares = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
        if self._watch:
            self._watch(Seen(len(chain), first_slot + rows.start, context, shares.flatten(1, 2)))
        attended = (shares[..., :context].flatten(2, 3) @ values[:, :, :context]).unflatten(2, query.shape[2:4])
        for number, (_, value) in enumerate(chain):
            attended = attended + shares[..., context + number, None] * value
        return attended
