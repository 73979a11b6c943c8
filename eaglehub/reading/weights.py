"""The weights of a drafter under their canonical names, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.plan.plan import TensorStep


def read_weights(checkpoint: Checkpoint, steps: Iterable[TensorStep]) -> dict[str, np.ndarray]:
    """What the steps make of the checkpoint's tensors, by output name; exactly what would be written."""
    return {step.name: _whole(checkpoint, step) for step in steps}


def _whole(checkpoint: Checkpoint, step: TensorStep) -> np.ndarray:
    chunks = list(step.output(checkpoint).chunks())
    return (chunks[0] if len(chunks) == 1 else np.concatenate(chunks)).reshape(step.shape)
