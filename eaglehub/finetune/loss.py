"""Soft cross-entropy of drafts to what the target would say, over the draft vocabulary, in chunks of positions.

A chunk's logits are turned into gradients at once and forgotten, so that no more than one chunk of them is ever in
memory, however large the vocabulary; and the target's distribution at a position is computed once for all the draft
steps that end there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

_SCORES = 1 << 22


class TargetHead(NamedTuple):
    """What the target makes of its last states.

    Attributes:
        rows: of its lm_head for the draft vocabulary, multiplied by the target's own factor for logits, [Vd, Ht].
        softcap: bound that it bends its logits to, as Gemma does; None for none.
    """

    rows: Tensor
    softcap: float | None = None

    def distribution(self, states: Tensor) -> Tensor:
        """Over the draft vocabulary, of states [M, Ht]; at least in float32."""
        logits = (states @ self.rows.T).to(torch.promote_types(states.dtype, torch.float32))
        return (logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)).softmax(-1)


class Judged(NamedTuple):
    """What drafts are judged by.

    Attributes:
        target: lm_head's input at each judged position, [M, Ht].
        rows: which of the drafts' rows k * S + slot ends there at step k, [K, M].
        weights: of that draft in the loss; 0 where there is none, [K, M].
    """

    target: Tensor
    rows: Tensor
    weights: Tensor


class Judgement(NamedTuple):
    """What came of it.

    Attributes:
        loss: sum of weighted cross-entropies.
        right: at each step, how many drafts are the target's choice, [K].
    """

    loss: Tensor
    right: Tensor


def soft_cross_entropy(states: Tensor, head: Tensor, target_head: TargetHead, judged: Judged) -> Judgement:
    """Sum over drafts of weight * -sum_v p(v) log q(v), with p the target's distribution over the draft vocabulary.

    Args:
        states: after the final norm, all steps' slots one after the other, [K * S, H].
        head: the drafter's, [Vd, H].
        target_head: the target's.
        judged: by what.
    """
    return Judgement(*_SoftCrossEntropy.apply(states, head, target_head, judged))


class _SoftCrossEntropy(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, head: Tensor, target_head: TargetHead, judged: Judged
    ) -> tuple[Tensor, Tensor]:
        target, rows, weights = judged
        exact = torch.promote_types(states.dtype, torch.float32)
        gradient = torch.zeros_like(states, dtype=exact)
        head_gradient = torch.zeros_like(head) if ctx.needs_input_grad[1] else None
        loss, right = states.new_zeros((), dtype=exact), torch.zeros(len(rows), dtype=torch.long, device=states.device)
        size = max(_SCORES // len(head), 1)
        for start in range(0, len(target), size):
            chunk = slice(start, start + size)
            shares = target_head.distribution(target[chunk])
            choices = shares.argmax(-1)
            for step, (own, weight) in enumerate(zip(rows[:, chunk], weights[:, chunk], strict=True)):
                read = states[own]
                logits = (read @ head.T).to(exact)
                right[step] += ((logits.argmax(-1) == choices) & (weight > 0)).sum()
                total = logits.logsumexp(-1)
                loss += (weight * (total - (shares * logits).sum(-1))).sum()
                # The derivative by the logits is q - p.
                wrong = (logits - total[:, None]).exp_().sub_(shares).mul_(weight[:, None]).to(read.dtype)
                gradient.index_add_(0, own, (wrong @ head).to(exact))
                if head_gradient is not None:
                    head_gradient += wrong.T @ read
        ctx.save_for_backward(gradient.to(states.dtype), head_gradient)
        ctx.mark_non_differentiable(right)
        return loss, right

    @staticmethod
    def backward(ctx: Any, outer: Tensor, _right: Tensor) -> tuple[Tensor | None, ...]:
        gradient, head_gradient = ctx.saved_tensors
        by_head = None if head_gradient is None else head_gradient * outer
        return gradient * outer, by_head, None, None
