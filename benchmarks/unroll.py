"""How near the unroll of five draft steps comes to the rate of bare float32 matrix products of the same shapes.

Both are timed back to back, several times over, and the ratio is taken of the best times: other work on the machine
disturbs a run but does not speed one up.
"""

from __future__ import annotations

import torch

from benchmarks.measure import seconds_of
from eaglehub.drafter.model import DraftModel
from eaglehub.drafter.tensors import expected_tensors
from tests.models.build import describe

LENGTH, DEPTH, ROUNDS = 256, 5, 4
_LIMIT = 0.5
# The sizes of a small real drafter.
DRAFTER = describe(
    hidden_size=576,
    target_hidden_size=576,
    vocab_size=4096,
    draft_vocab_size=4096,
    num_attention_heads=9,
    num_key_value_heads=3,
    head_dim=64,
    intermediate_size=1536,
    max_position_embeddings=LENGTH + DEPTH,
    aux_layer_ids=(2, 15, 27),
    fc_norm=True,
    norm_output=True,
)


def main() -> None:
    """Print the ratio and both times."""
    tensors = {name: torch.randn(each.shape) * 0.05 for name, each in expected_tensors(DRAFTER).items()}
    model = DraftModel.load(DRAFTER, tensors)
    aux, tokens = torch.randn(1, LENGTH, 3 * 576), torch.randint(4096, (1, LENGTH + DEPTH))
    products = _products(tensors)

    def unroll() -> None:
        for _ in model.unroll(aux, tokens, DEPTH):
            pass

    def multiply() -> None:
        for left, right in products:
            left @ right

    with torch.inference_mode():
        times = [(seconds_of(unroll), seconds_of(multiply)) for _ in range(ROUNDS)]
    unrolled, multiplied = (min(column) for column in zip(*times, strict=True))
    print(
        f"unroll: {multiplied / unrolled:.2f}x of the rate of bare matrix products (at least {_LIMIT}x; "
        f"{unrolled:.2f} s, {multiplied:.2f} s, {DEPTH} steps over {LENGTH} positions)"
    )


def _products(tensors: dict[str, torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """One product for each matrix and step (fc once), and those of attention: a causal half, in nine heads."""
    matrices = [(name, each) for name, each in tensors.items() if each.dim() == 2 and name != "embed_tokens.weight"]
    products = []
    for step in range(DEPTH):
        due = [each for name, each in matrices if step == 0 or name != "fc.weight"]
        products += [(torch.randn(LENGTH, each.shape[1]), each.T) for each in due]
        query, key = torch.randn(9, LENGTH, 64), torch.randn(9, 64, LENGTH // 2)
        products += [(query, key), (query @ key, torch.randn(9, LENGTH // 2, 64))]
    return products


if __name__ == "__main__":
    main()
