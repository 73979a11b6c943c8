"""How to train, as data; no torch here, the command's options read it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to train.

    Attributes:
        trainable: of `SETS`.
        ttt_steps: draft steps K that are unrolled.
        rate: peak learning rate of matrices; that of norms is `RELATIVE` times as large, and relative.
        batch_tokens: positions a step.
        epochs: passes over the data; None where `max_steps` alone counts.
        max_steps: optimizer steps at most.
        warmup: share of the steps in which the rate rises; after them it falls to zero as a cosine.
        clip: largest norm of the gradient.
        anchor: weight of half the squared distance to the start.
        seed: of the order of the data.
        dtype: `float32`, or `bfloat16` for matrix products.
        recompute: spare memory by computing the MLP's activations again for the gradients.
        evaluate_every: steps between evaluations on held-out prompts, and between checkpoints.
        patience: evaluations without a new best before it stops.
    """

    trainable: str
    ttt_steps: int
    rate: float
    batch_tokens: int
    epochs: int | None
    max_steps: int | None
    warmup: float
    clip: float
    anchor: float
    seed: int
    dtype: str
    recompute: bool
    evaluate_every: int
    patience: int

    def factor(self, step: int, steps: int) -> float:
        """Share of the peak rate at a step of `steps`, counted from 0."""
        rising = max(round(self.warmup * steps), 1)
        if step < rising:
            return (step + 1) / rising
        return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(steps - rising, 1)))
