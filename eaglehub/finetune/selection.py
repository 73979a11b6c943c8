"""Which of the trained weights are kept: those that accept most on held-out prompts, in the precision they are written.

A loss that falls says little: reports have acceptance falling with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import numpy_dtype
from eaglehub.drafter.model import DraftModel
from eaglehub.scoring.load import to_tensor
from eaglehub.scoring.score import acceptance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from torch import Tensor

    from eaglehub.features import Features
    from eaglehub.scoring.acceptance import Acceptance

Arrays = dict[str, "np.ndarray[Any, Any]"]


@dataclass(frozen=True, slots=True)
class Selector:
    """Measures acceptance at every position, which a walk's few drafts would measure less surely.

    Attributes:
        start: the drafter as it was.
        dtypes: safetensors name of each trained tensor's dtype in the checkpoint.
        features: held-out prompts; can be iterated more than once.
        depth: draft positions K to judge.
    """

    start: DraftModel
    dtypes: Mapping[str, str]
    features: Iterable[Features]
    depth: int

    def rounded(self, weights: Mapping[str, Tensor]) -> Arrays:
        """Trained weights as the checkpoint will hold them."""
        return {
            name: weights[name].float().cpu().numpy().astype(numpy_dtype(dtype)) for name, dtype in self.dtypes.items()
        }

    def measure(self, arrays: Arrays) -> Acceptance:
        """Acceptance of the drafter with these tensors in place of its own."""
        return acceptance(self.model(arrays), self.features, self.depth)

    def model(self, arrays: Arrays) -> DraftModel:
        """The drafter with these tensors in place of its own."""
        tensors = self.start.state_dict()
        weight = self.start.norm.weight
        own = {name: to_tensor(array, "float32").to(weight.device, weight.dtype) for name, array in arrays.items()}
        return DraftModel.load(self.start.drafter, {**tensors, **own})
