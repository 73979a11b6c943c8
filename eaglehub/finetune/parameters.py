"""What is trained of a drafter, and in which terms.

Weights of a norm are trained as w0 * (1 + d): their sizes differ by orders of magnitude, and one rate then suits all.
`fc` reads states that `fc_norm` has made as large as they are in their layers, the last ones many times larger than
the first; it is trained as if they were all of one size. With post-norm feedback the final norm's weights c do two
things: they scale what the head reads and what is fed back. An upgrade leaves c large and the head as many times
smaller, so that one rate on both would wreck the head. When both are trained, the head is therefore taken apart again,
W' = W diag(g * (1 + d) / c): W is a head as large as the target's, g what the final norm had been, and c is left to
the feedback. The checkpoint only ever sees the products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from eaglehub.drafter.shared import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.drafter.model import DraftModel

_NORM = "norm.weight"
# Of the mean gain: a column that is all but zero is not blown up.
_SMALLEST = 1e-2


class Relative(nn.Module):  # type: ignore[misc]
    """Weights as start * (1 + d); d is trained."""

    start: Tensor

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.register_buffer("start", start.detach().clone())

    def forward(self, change: Tensor) -> Tensor:
        """The weights."""
        return self.start * (1 + change)

    def right_inverse(self, weights: Tensor) -> Tensor:
        """The change that gives them; where the start is zero, none can."""
        return torch.where(self.start == 0, 0, weights / self.start - 1).detach()


class Scaled(nn.Module):  # type: ignore[misc]
    """A matrix [rows, columns] whose columns are trained in other sizes: weights = trained * factors."""

    factors: Tensor

    def __init__(self, factors: Tensor) -> None:
        super().__init__()
        self.register_buffer("factors", factors.detach().clone())

    def forward(self, trained: Tensor) -> Tensor:
        """The weights."""
        return trained * self.factors

    def right_inverse(self, weights: Tensor) -> Tensor:
        """What gives them."""
        return (weights / self.factors).detach()


class Unfolded(nn.Module):  # type: ignore[misc]
    """A head [Vd, H] as W diag(g * (1 + d) / c), where c are the weights of `norm`; W and d are trained."""

    gains: Tensor

    def __init__(self, gains: Tensor, norm: nn.Module) -> None:
        super().__init__()
        self.register_buffer("gains", gains.detach().clone())
        self.change = nn.Parameter(torch.zeros_like(gains))
        self._norm = (norm,)  # in a tuple: it is the model's, not this module's

    def forward(self, head: Tensor) -> Tensor:
        """The folded head."""
        return head * self._factors()

    def right_inverse(self, head: Tensor) -> Tensor:
        """The head as large as the target's."""
        return (head / self._factors()).detach()

    def _factors(self) -> Tensor:
        return self.gains * (1 + self.change) / self._norm[0].weight


def prepare_training(model: DraftModel, names: list[str], target_head: Tensor) -> None:
    """Freeze all but the named tensors of a model and put those into the terms that they are trained in.

    Args:
        model: with float32 weights.
        names: of `trained_names`.
        target_head: rows of the target's head for the draft vocabulary, [Vd, Ht].
    """
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    unfold = model.drafter.norm_output and {HEAD, _NORM} <= set(names)
    gains = head_gains(model, target_head) if unfold else None
    for name in names:
        model.get_parameter(name).requires_grad_(True)
        module, _, attribute = name.rpartition(".")
        if is_norm(name):
            owner = model.get_submodule(module)
            parametrize.register_parametrization(owner, attribute, Relative(owner.weight))
    if model.drafter.fc_norm and "fc.weight" in names:
        parametrize.register_parametrization(model.fc, "weight", Scaled(_evened(model)))
    if gains is not None:
        parametrize.register_parametrization(model.lm_head, "weight", Unfolded(gains, model.norm))


def head_gains(model: DraftModel, target_head: Tensor) -> Tensor:
    """What the final norm had been before it was folded into the head, [H], as far as weights tell.

    A drafter's head starts as the target's, or comes to be about as large; so the ratio of the two, column by column
    and by their root mean square, is what was folded in.

    Args:
        model: the drafter.
        target_head: rows of the target's head for the draft vocabulary, [Vd, Ht].
    """
    own, others = (head.detach().float().square().mean(0).sqrt() for head in (model.lm_head.weight, target_head))
    if own.shape != others.shape:
        own, others = own.mean().expand_as(own), others.mean().expand_as(own)
    ratio = own / others
    return model.norm.weight.detach() * ratio.clamp(min=_SMALLEST * float(ratio.mean()))


def _evened(model: DraftModel) -> Tensor:
    """How much larger fc's columns [A * Ht] are to be than when all of its inputs are as large as their mean."""
    sizes = torch.stack([norm.weight.detach().square().mean().sqrt() for norm in model.fc_norm])
    factors = sizes.log().mean().exp() / sizes.clamp(min=1e-6)
    return factors.repeat_interleave(model.drafter.target_hidden_size)


def is_norm(name: str) -> bool:
    """Whether a tensor is a norm's weights."""
    return name.endswith("norm.weight") or name.startswith("fc_norm.")


def raw_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, bool]]:
    """What the optimizer works on: name, parameter, and whether it is a relative change."""
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            yield name, parameter, parameter.dim() == 1 and "parametrizations" in name


def trained_weights(model: DraftModel, names: list[str]) -> dict[str, Tensor]:
    """The named tensors as they are now, under their canonical names."""
    weights = {}
    for name in names:
        module, _, attribute = name.rpartition(".")
        weights[name] = getattr(model.get_submodule(module), attribute).detach().clone()
    return weights
