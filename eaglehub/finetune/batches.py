"""Batches: whole conversations side by side in one row, in an order that follows from the seed alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from eaglehub.drafter.memory import Packing
from eaglehub.errors import UnusableInput
from eaglehub.features.choices import read_choices
from eaglehub.finetune.loss import Judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from eaglehub.features import Features, Span, Store

DECAY = 0.8


class Batch(NamedTuple):
    """Documents in a row, T positions and S slots together.

    Attributes:
        aux: the target's states, [1, T, A * Ht].
        tokens: what follows each position, and K - 1 that only pad, [1, T + K - 1].
        packing: where the documents are, and their slots.
        judged: by what the drafts are judged.
    """

    aux: Tensor
    tokens: Tensor
    packing: Packing
    judged: Judged


@dataclass(frozen=True, slots=True)
class Loader:
    """Makes batches of a store's samples.

    Attributes:
        store: with choices.
        spans: of its samples.
        depth: draft steps K to train on.
        batch_tokens: positions in a batch; a longer conversation is a batch of its own.
        draft_ids: the target's ids of the draft vocabulary, as a mask over its vocabulary, [V].
        reads_aux: whether the drafter has aux states; else it reads what lm_head does.
        seed: of the order.
    """

    store: Store
    spans: Sequence[Span]
    depth: int
    batch_tokens: int
    draft_ids: Tensor
    reads_aux: bool
    seed: int

    def epoch(self, number: int) -> list[list[int]]:
        """Sample numbers, batch by batch."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        batches: list[list[int]] = []
        room = 0
        for sample in torch.randperm(len(self.spans), generator=generator).tolist():
            length = self.spans[sample].tokens - 1
            if slots_of(self.spans[sample]):
                if length > room:
                    batches.append([])
                    room = self.batch_tokens
                batches[-1].append(sample)
                room -= length
        return batches

    def judges(self, sample: int) -> bool:
        """Whether a draft for this sample can be right at all."""
        choices = read_choices(self.store, sample)
        return any(bool(self.draft_ids[choices[_judged_at(slots)]].any()) for slots in slots_of(self.spans[sample]))

    def batch(self, samples: Sequence[int]) -> Batch:
        """The samples side by side."""
        features = [self.store.read(sample) for sample in samples]
        choices = [read_choices(self.store, sample) for sample in samples]
        return pack(features, choices, self.draft_ids, self.depth, reads_aux=self.reads_aux)


def slots_of(span: Span | Features) -> tuple[range, ...]:
    """Where an engine may draft: from the first token of each answer on, as long as the answer goes on after it."""
    answers = (*span.earlier, (span.prompt_length, span.end))
    return tuple(range(start - 1, end - 2) for start, end in answers if end - start > 1)


def _judged_at(slots: range) -> slice:
    """Where drafts from the slots are judged, all steps together."""
    return slice(slots.start + 1, slots.stop + 1)


def pack(
    features: Sequence[Features], choices: Sequence[Tensor], draft_ids: Tensor, depth: int, *, reads_aux: bool
) -> Batch:
    """One row of documents.

    The draft of step k from slot t is judged at position t + 1 + k of the answer, where the target's choice must be in
    the draft vocabulary; its weight is 0.8^k.

    Args:
        features: of each document.
        choices: the target's choice after each position, for each document [T - 1].
        draft_ids: which of the target's ids are in the draft vocabulary, [V].
        depth: draft steps K.
        reads_aux: whether the drafter reads aux states.
    """
    packing = Packing(tuple(len(each.tokens) - 1 for each in features), tuple(map(slots_of, features)))
    states = [each.aux if reads_aux else each.head_input for each in features]
    tokens = torch.cat([*(each.tokens[1:] for each in features), torch.zeros(depth - 1, dtype=torch.long)])
    return Batch(torch.cat(states)[None], tokens[None], packing, _judged(features, choices, draft_ids, depth, packing))


def _judged(
    features: Sequence[Features], choices: Sequence[Tensor], draft_ids: Tensor, depth: int, packing: Packing
) -> Judged:
    slots_before, total = 0, len(packing.places)
    target, rows, weights = [], [], []
    steps = torch.arange(depth)[:, None]
    for document, slots in packing.runs:
        judged_at = _judged_at(slots)
        fits = draft_ids[choices[document][judged_at]]
        own = torch.arange(len(slots))[fits][None] - steps
        target.append(features[document].head_input[judged_at][fits])
        rows.append(steps * total + slots_before + own.clamp(min=0))
        weights.append(torch.where(own >= 0, DECAY**steps, 0.0))
        slots_before += len(slots)
    return Judged(torch.cat(target), torch.cat(rows, dim=1), torch.cat(weights, dim=1))


def check(spans: Sequence[Span], positions: int | None, depth: int) -> None:
    """Refuse samples that cannot be trained on.

    Args:
        spans: of all samples.
        positions: the drafter's max_position_embeddings.
        depth: draft steps K.

    Raises:
        UnusableInput: one is longer than the drafter's positions, or none has an answer to learn from.
    """
    for number, span in enumerate(spans, start=1):
        if positions is not None and span.tokens - 1 + depth > positions:
            raise UnusableInput(
                f"conversation {number} has {span.tokens} tokens, and the drafter {positions} positions",
                where="--prompts",
                fix="leave it out, or cut it",
            )
    if not any(slots_of(span) for span in spans):
        raise UnusableInput("no answer is long enough to learn from", where="--prompts", fix="a larger --max-tokens")


def shares(samples: Sequence[int], spans: Sequence[Span], count: int) -> list[list[int]]:
    """A batch's samples spread over `count` processes, longest first to whoever has least; some may get none."""
    parts: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for sample in sorted(samples, key=lambda each: -spans[each].tokens):
        least = loads.index(min(loads))
        parts[least].append(sample)
        loads[least] += spans[sample].tokens
    return parts


def batches_from(loader: Loader, start: int, stop: int) -> Iterator[tuple[int, list[int]]]:
    """Step numbers `start` to `stop`, each with its samples, epoch after epoch."""
    per_epoch: list[list[int]] = []
    epoch, before = -1, 0
    for step in range(stop):
        if step - before >= len(per_epoch):
            before += len(per_epoch)
            epoch += 1
            per_epoch = loader.epoch(epoch)
        if step >= start:
            yield step, per_epoch[step - before]
