"""The reference drafter of a checkpoint, with what it shares with its target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.drafter.shared import EMBEDDING, HEAD, find_shared, open_target
from eaglehub.drafter.tensors import expected_tensors
from eaglehub.errors import EnvironmentProblem
from eaglehub.reading.weights import read_weights

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import numpy as np
    from torch import Tensor

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.model import DraftModel
    from eaglehub.plan.plan import TensorStep


def load_model(
    checkpoint: Checkpoint,
    steps: Iterable[TensorStep],
    drafter: Drafter,
    target: Path,
    dtype: str = "float32",
    device: str | None = None,
) -> DraftModel:
    """The drafter that the steps make of a checkpoint.

    Args:
        checkpoint: the source.
        steps: canonical tensors.
        drafter: what they make.
        target: the target's folder, for the embedding or head that the drafter does not have itself.
        dtype: to compute in.
        device: where; None for the GPU where there is one.

    Raises:
        UnusableInput: the drafter is of a kind that cannot be run here, or the target lacks what it should share.
        EnvironmentProblem: torch or transformers are not installed.
    """
    try:
        import torch

        from eaglehub.drafter.model import DraftModel, check_runnable
    except ImportError as error:
        raise EnvironmentProblem("running a drafter needs torch", fix="pip install 'eaglehub[train]'") from error
    check_runnable(drafter)
    wanted = expected_tensors(drafter)
    arrays = read_weights(checkpoint, (step for step in steps if step.name in wanted))
    absent = [name for name in (EMBEDDING, HEAD) if name not in arrays]
    if absent:
        weights = open_target(target)
        arrays |= {name: weights.read(find_shared(weights, name)) for name in absent}
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return DraftModel.load(drafter, {name: to_tensor(array, dtype).to(device) for name, array in arrays.items()})


def to_tensor(array: np.ndarray[Any, Any], dtype: str) -> Tensor:
    """An array as a tensor: floats in `dtype`, integers as int64."""
    import numpy as np
    import torch

    if array.dtype.kind in "iu":
        return torch.from_numpy(array.astype(np.int64))
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(getattr(torch, dtype))
    return torch.from_numpy(array).to(getattr(torch, dtype))
