"""What a batch holds: documents that do not see each other, and drafts judged where an engine would be."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from eaglehub.drafter.memory import Packing
from eaglehub.features import Features
from eaglehub.features.store import Span
from eaglehub.finetune.batches import DECAY, Loader, batches_from, pack, shares
from tests.models.build import describe, random_model

DEPTH, WIDTH, VOCAB = 3, 4, 50


def sample(length: int, prompt: int, end: int, seed: int, *earlier: tuple[int, int]) -> Features:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(VOCAB, (length,), generator=generator)
    states = [torch.randn(length - 1, width, generator=generator) for width in (3 * WIDTH, WIDTH)]
    return Features(tokens, prompt, end, *states, earlier)


@pytest.mark.parametrize("architecture", ["llama", "mla"])
def test_documents_in_a_row_are_as_each_alone(architecture: str) -> None:
    model = random_model(describe(architecture, norm_output=True, fc_norm=True))
    packing = Packing((9, 300, 5), ((range(2, 8),), (range(40, 60), range(250, 290)), (range(4),)))
    generator = torch.Generator().manual_seed(3)
    aux = torch.randn(1, 314, 3 * model.drafter.target_hidden_size, generator=generator)
    tokens = torch.randint(model.drafter.vocab_size, (1, 314 + DEPTH - 1), generator=generator)

    with torch.inference_mode():
        packed = list(model.chains(aux, tokens, DEPTH, packing))
        row = 0
        for document, slots in packing.runs:
            start, length = sum(packing.lengths[:document]), packing.lengths[document]
            own = slice(start, start + length)
            alone = model.unroll(aux[:, own], tokens[:, start : start + length + DEPTH - 1], DEPTH, slots)
            for step, (before, after) in zip(alone, packed, strict=True):
                rows = slice(row, row + len(slots))
                torch.testing.assert_close(before[:, rows], step.before_norm, atol=2e-5, rtol=1e-4)
                torch.testing.assert_close(model.lm_head(after[:, rows]), step.logits, atol=2e-5, rtol=1e-4)
            row += len(slots)


def test_a_draft_is_judged_by_what_the_target_would_say_there() -> None:
    features = [sample(12, 4, 11, 0), sample(20, 14, 20, 1, (2, 3), (5, 9))]
    choices = [torch.randint(VOCAB, (len(each.tokens) - 1,)) for each in features]
    draft_ids = torch.arange(VOCAB) % 3 != 0

    batch = pack(features, choices, draft_ids, DEPTH, reads_aux=True)

    expected = []
    row = 0
    for each, chosen in zip(features, choices, strict=True):
        for start, end in (*each.earlier, (each.prompt_length, each.end)):
            for slot in range(start - 1, end - 2):
                for k in range(DEPTH):
                    judged_at = slot + 1 + k  # the target's state there says what token slot + 2 + k should be
                    if judged_at <= end - 2 and draft_ids[chosen[judged_at]]:
                        expected.append((k, row, tuple(each.head_input[judged_at].tolist()), pytest.approx(DECAY**k)))
                row += 1
    slots = len(batch.packing.places)
    got = [
        (k, int(batch.judged.rows[k, place]) - k * slots, tuple(batch.judged.target[place].tolist()), float(weight))
        for k in range(DEPTH)
        for place, weight in enumerate(batch.judged.weights[k])
        if weight > 0
    ]
    assert sorted(got, key=lambda each: each[:2]) == sorted(expected, key=lambda each: each[:2])
    assert row == slots
    assert batch.tokens[0, :11].tolist() == features[0].tokens[1:].tolist()


def loader(spans: list[Span], **changes: Any) -> Loader:
    settings: dict[str, Any] = {"store": None, "depth": DEPTH, "batch_tokens": 100, "reads_aux": True, "seed": 0}
    return Loader(spans=spans, draft_ids=torch.ones(VOCAB, dtype=torch.bool), **(settings | changes))


def test_an_epoch_has_every_sample_once_in_full_batches() -> None:
    spans = [Span(20 + number, 5, 20 + number) for number in range(30)] + [Span(8, 7, 8), Span(300, 5, 300)]

    batches = loader(spans).epoch(0)

    assert sorted(each for batch in batches for each in batch) == [*range(30), 31]  # 30 has no draft to judge
    assert all(sum(spans[each].tokens - 1 for each in batch) <= 100 for batch in batches if batch != [31])
    assert batches != loader(spans).epoch(1)
    assert batches != loader(spans, seed=1).epoch(0)
    assert batches == loader(spans).epoch(0)


def test_steps_can_be_taken_up_anywhere() -> None:
    spans = [Span(40, 5, 40) for _ in range(7)]
    whole = list(batches_from(loader(spans), 0, 11))

    assert [step for step, _ in whole] == list(range(11))
    assert list(batches_from(loader(spans), 6, 11)) == whole[6:]


def test_a_batch_is_shared_out_evenly() -> None:
    spans = [Span(length, 2, length) for length in (50, 10, 40, 30, 20)]

    parts = shares(range(5), spans, 2)

    assert sorted(each for part in parts for each in part) == list(range(5))
    loads = [sum(spans[each].tokens for each in part) for part in parts]
    assert max(loads) - min(loads) <= 20
    assert shares([3], spans, 2) == [[3], []]
