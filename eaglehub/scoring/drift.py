"""Attention drift: what changes from one draft step to the next, and should not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from eaglehub.drafter.memory import Seen

DEPTH = 8
MEASURES = ("state_rms", "sink_mass", "recent_mass", "attention_entropy")


def _zeros() -> dict[str, Tensor]:
    import torch

    return {name: torch.zeros(DEPTH, dtype=torch.float64) for name in MEASURES}


@dataclass(slots=True)
class Drift:
    """Means over all slots, heads and layers at draft steps 1 to `DEPTH`.

    `state_rms` is that of the state before the final norm; `sink_mass` the attention on the first token; `recent_mass`
    that on the slot itself and its own draft steps; `attention_entropy` in nats.
    """

    _sums: dict[str, Tensor] = field(default_factory=_zeros)
    _counts: dict[str, Tensor] = field(default_factory=_zeros)

    def see(self, slots: range, seen: Seen) -> None:
        """Take note of attention probabilities; rows of other positions than `slots` are the context's."""
        import torch

        start = max(slots.start - seen.first_slot, 0)
        shares = seen.probabilities[..., start : slots.stop - seen.first_slot, :].float()
        rows = shares.shape[-2]
        if rows <= 0:
            return
        places = torch.arange(seen.first_slot + start, seen.first_slot + start + rows, device=shares.device)
        own = shares.gather(-1, places.expand(*shares.shape[:-2], rows)[..., None])[..., 0]
        self._add("sink_mass", seen.depth, shares[..., 0])
        self._add("recent_mass", seen.depth, own + shares[..., seen.context :].sum(-1))
        self._add("attention_entropy", seen.depth, torch.special.entr(shares).sum(-1))

    def see_state(self, depth: int, state: Tensor) -> None:
        """Take note of states [..., H] before the final norm."""
        self._add("state_rms", depth, rms(state))

    def means(self) -> dict[str, list[float]]:
        """Each measure by draft step."""
        return {name: (self._sums[name] / self._counts[name].clamp(min=1)).tolist() for name in MEASURES}

    def _add(self, name: str, depth: int, values: Tensor) -> None:
        self._sums[name][depth] += values.double().sum().cpu()
        self._counts[name][depth] += values.numel()


def rms(states: Tensor) -> Tensor:
    """Root mean square over the last axis."""
    return states.float().square().mean(-1).sqrt()
