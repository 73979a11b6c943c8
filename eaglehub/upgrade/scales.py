"""How large the target's states are: what `fc_norm` must put back after dividing by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from eaglehub.errors import UnusableInput
from eaglehub.scoring.drift import rms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from eaglehub.features import Features

# A state this many times the median RMS of its layer is a massive activation; ordinary ones stay within a factor of 4.
OUTLIER = 6.0
_BINS_PER_OCTAVE, _OCTAVES = 64, 40
_FIRST_POSITIONS = 16


@dataclass(frozen=True, slots=True)
class Scales:
    """RMS of each of the A aux states, outliers left out.

    Attributes:
        gains: mean RMS [A]; with `norm_before_fc`, mean of the RMS over that of the whole concatenation.
        medians: median RMS [A].
        largest: largest RMS [A] among the states that count.
        tokens: how many tokens were looked at.
        outliers: how many were left out because one of their states is massive.
        sinks: among the first positions, those where most tokens were left out.
    """

    gains: list[float]
    medians: list[float]
    largest: list[float]
    tokens: int
    outliers: int
    sinks: list[int]

    def to_json(self) -> dict[str, Any]:
        """As reports have it."""
        return {
            "gains": self.gains,
            "median_rms": self.medians,
            "largest_rms": self.largest,
            "tokens": self.tokens,
            "outlier_tokens": self.outliers,
            "outlier_threshold": OUTLIER,
            "sink_positions": self.sinks,
        }


def measure_scales(features: Iterable[Features], aux: int, *, relative: bool = False) -> Scales:
    """Read the features twice, once for the medians and once for the means without outliers; memory is bounded.

    Args:
        features: can be iterated more than once.
        aux: number A of aux states.
        relative: measure against the RMS of the concatenation, for drafters with `norm_before_fc`.

    Raises:
        UnusableInput: the target's states are not finite.
    """
    medians = _medians(features, aux)
    total, largest = np.zeros(aux), np.zeros(aux)
    tokens, kept = 0, 0
    seen, left_out = np.zeros(_FIRST_POSITIONS, np.int64), np.zeros(_FIRST_POSITIONS, np.int64)
    for each in features:
        sizes = _sizes(each, aux)
        massive: NDArray[np.bool_] = np.any(sizes > OUTLIER * medians, axis=1)
        first = massive[:_FIRST_POSITIONS]
        seen[: len(first)] += 1
        left_out[: len(first)] += first
        ordinary = sizes[~massive]
        whole = np.sqrt(np.square(ordinary).mean(axis=1, keepdims=True)) if relative else 1.0
        total += (ordinary / whole).sum(axis=0)
        largest = np.maximum(largest, ordinary.max(axis=0, initial=0))
        tokens, kept = tokens + len(sizes), kept + len(ordinary)
    sinks = [int(place) for place in np.flatnonzero((2 * left_out > seen) & (seen > 0))]
    gains = total / max(kept, 1)
    return Scales(gains.tolist(), medians.tolist(), largest.tolist(), tokens, tokens - kept, sinks)


def _sizes(features: Features, aux: int) -> NDArray[np.float64]:
    """RMS of each state of each token, [T - 1, A]."""
    chunks = features.aux.to(torch.float32).unflatten(-1, (aux, -1))
    sizes: NDArray[np.float64] = rms(chunks).double().numpy()
    if not np.isfinite(sizes).all():
        raise UnusableInput("the target's states are not finite", where="target", fix="another --compute-dtype")
    return sizes


def _medians(features: Iterable[Features], aux: int) -> NDArray[np.float64]:
    """From a histogram over logarithms, exact to 1 %."""
    counts = np.zeros((aux, _BINS_PER_OCTAVE * _OCTAVES), np.int64)
    for each in features:
        logs = np.log2(np.maximum(_sizes(each, aux), 2.0 ** (-_OCTAVES // 2)))
        bins = np.clip((logs + _OCTAVES // 2) * _BINS_PER_OCTAVE, 0, counts.shape[1] - 1).astype(np.int64)
        for chunk in range(aux):
            counts[chunk] += np.bincount(bins[:, chunk], minlength=counts.shape[1])
    middle = (counts.cumsum(axis=1) >= counts.sum(axis=1, keepdims=True) / 2).argmax(axis=1)
    medians: NDArray[np.float64] = 2.0 ** ((middle + 0.5) / _BINS_PER_OCTAVE - _OCTAVES // 2)
    return medians
