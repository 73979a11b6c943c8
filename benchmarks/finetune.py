"""How much faster a step that trains the norms is than one that trains everything, and how near it comes to its matrix
products alone.

All are timed back to back, several times over, and ratios are taken of the best times: other work on the machine
disturbs a run but does not speed one up. The target's product is left out of the first ratio: it is the same in both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from benchmarks.measure import seconds_of
from benchmarks.unroll import DRAFTER
from eaglehub.drafter.memory import Packing
from eaglehub.drafter.model import DraftModel
from eaglehub.drafter.tensors import expected_tensors
from eaglehub.finetune.batches import Batch
from eaglehub.finetune.loss import Judged, TargetHead
from eaglehub.finetune.parameters import prepare_training, raw_parameters
from eaglehub.finetune.sets import trained_names
from eaglehub.finetune.train import Objective

if TYPE_CHECKING:
    from collections.abc import Callable

DOCUMENTS, LENGTH, DEPTH, ROUNDS = 4, 256, 3, 4
_FASTER, _RATE = 1.3, 0.5
_TOKENS = DOCUMENTS * LENGTH


def main() -> None:
    """Print both ratios and the times."""
    head = TargetHead(torch.randn(DRAFTER.draft_vocab_size, DRAFTER.target_hidden_size) * 0.05)
    batch = _batch()
    steps = {name: _step(name, head, batch) for name in ("norms", "all")}
    products = _products()

    def multiply() -> None:
        for left, right in products:
            left @ right

    work = {**steps, "target": lambda: head.distribution(batch.judged.target), "products": multiply}
    rounds = [{name: seconds_of(each) for name, each in work.items()} for _ in range(ROUNDS)]
    best = {name: min(times[name] for times in rounds) for name in work}
    faster = (best["all"] - best["target"]) / (best["norms"] - best["target"])
    print(
        f"norms against all weights: {faster:.2f}x as fast (at least {_FASTER}x; {best['norms']:.2f} s, "
        f"{best['all']:.2f} s, {DEPTH} draft steps over {_TOKENS} tokens)"
    )
    print(
        f"a step that trains norms: {best['products'] / best['norms']:.2f}x of the rate of bare matrix products "
        f"(at least {_RATE}x; {best['norms']:.2f} s, {best['products']:.2f} s)"
    )


def _step(name: str, head: TargetHead, batch: Batch) -> Callable[[], None]:
    drafter = replace(DRAFTER, max_position_embeddings=LENGTH + DEPTH)
    tensors = {each: torch.randn(spec.shape) * 0.05 for each, spec in expected_tensors(drafter).items()}
    model = DraftModel.load(drafter, tensors)
    prepare_training(model, trained_names(drafter, name), head.rows)
    objective = Objective(model, head, DEPTH)
    optimizer = torch.optim.AdamW([parameter for _, parameter, _ in raw_parameters(model)], 1e-6)

    def step() -> None:
        optimizer.zero_grad()
        objective(batch).loss.backward()
        optimizer.step()

    return step


def _batch() -> Batch:
    """Every position of every document is a slot and is judged, as far as there are such."""
    packing = Packing((LENGTH,) * DOCUMENTS, ((range(LENGTH),),) * DOCUMENTS)
    rows = torch.arange(DEPTH)[:, None] * _TOKENS + torch.arange(_TOKENS)
    judged = Judged(torch.randn(_TOKENS, DRAFTER.target_hidden_size), rows, torch.ones(DEPTH, _TOKENS))
    aux = torch.randn(1, _TOKENS, 3 * DRAFTER.target_hidden_size)
    return Batch(aux, torch.randint(DRAFTER.vocab_size, (1, _TOKENS + DEPTH - 1)), packing, judged)


def _products() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """One for each matrix and draft step (fc once) and one for the gradient of its input, those of attention, and the
    target's: a causal half for each document, in nine heads.
    """
    shapes = {name: each.shape for name, each in expected_tensors(DRAFTER).items() if len(each.shape) == 2}
    shapes.pop("embed_tokens.weight")
    products = [(torch.randn(_TOKENS, 576), torch.randn(576, DRAFTER.draft_vocab_size))]
    for step in range(DEPTH):
        for rows, columns in (shape for name, shape in shapes.items() if step == 0 or name != "fc.weight"):
            products.append((torch.randn(_TOKENS, columns), torch.randn(columns, rows)))
            products.append((torch.randn(_TOKENS, rows), torch.randn(rows, columns)))
        narrow, wide = torch.randn(9, LENGTH, 64), torch.randn(9, LENGTH, LENGTH // 2)
        across, back = torch.randn(9, 64, LENGTH // 2), torch.randn(9, LENGTH // 2, 64)
        products += [(narrow, across), (wide, back), (wide, back), (narrow, across)] * DOCUMENTS
        products += [(wide.mT.contiguous(), narrow)] * 2 * DOCUMENTS
    return products


if __name__ == "__main__":
    main()
