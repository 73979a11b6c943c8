"""Other readings of a drafter's file: one thing changed in each, measured on the same states of the same prompts.

What is measured is the probability that the drafter gives to the target's own token at the first draft positions of
every slot of the answers. It tells readings apart with far fewer tokens than the number of accepted ones does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from eaglehub.drafter.model import DraftModel
from eaglehub.drafter.shared import EMBEDDING, find_shared, open_target
from eaglehub.scoring.load import to_tensor
from eaglehub.scoring.score import answer_slots
from eaglehub.verify.diagnosis import DECLARED, MUTED, Measured
from eaglehub.verify.metrics import ratio_half_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor

    from eaglehub.drafter.target import Target
    from eaglehub.features import Features
    from eaglehub.verify.reference import Reference

# With more, states are fed back that few drafts get to.
_DEPTH = 2
_COMMON_THETA = 10000.0
_OUTPUT, _QUERY, _KEY = (f"layers.0.self_attn.{part}_proj.weight" for part in "oqk")


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to run the drafter, with one or several ways to tell what its rows mean.

    Attributes:
        model: the drafter.
        layer_ids: the target states that it is given.
        tokens: for each name the target's ids of the rows of the head, [Vd].
    """

    model: DraftModel
    layer_ids: tuple[int, ...]
    tokens: Mapping[str, Tensor]


def measure_readings(reference: Reference, target: Target) -> list[Measured]:
    """The declared reading first, then all others for which the states were recorded."""
    sums: dict[str, list[tuple[float, float, int]]] = {}
    for reading in _readings(reference, target):
        features = [
            each.reading(reading.layer_ids) if reading.layer_ids else each.features for each in reference.recorded
        ]
        for each in features:
            if each is not None:
                for name, counted in _counted(reading, each).items():
                    sums.setdefault(name, []).append(counted)
    declared = sums[DECLARED]
    return [_measured(name, counted, declared) for name, counted in sums.items()]


def _measured(name: str, counted: list[tuple[float, float, int]], declared: list[tuple[float, float, int]]) -> Measured:
    probability, accepted, slots = (sum(values) for values in zip(*counted, strict=True))
    base = sum(each[0] for each in declared)
    pairs = [(one[0], other[0]) for one, other in zip(declared, counted, strict=True)]
    return Measured(
        name, probability / (_DEPTH * slots), 1 + accepted / slots, probability / base, ratio_half_width(pairs)
    )


def _readings(reference: Reference, target: Target) -> Iterator[Reading]:
    model, ids = reference.model, reference.layer_ids
    drafter = model.drafter
    rows = model.target_ids(torch.arange(drafter.draft_vocab_size, device=model.norm.weight.device))
    yield Reading(model, ids, {DECLARED: rows, **_other_maps(rows, drafter.vocab_size)})

    def changed(name: str, tensors: Mapping[str, Tensor] | None = None, **described: Any) -> Reading:
        other = DraftModel.load(replace(drafter, **described), {**model.state_dict(), **(tensors or {})})
        return Reading(other, ids, {name: rows})

    for step in (-1, 1):
        shifted = tuple(layer + step for layer in ids)
        yield Reading(model, shifted, {f"layer ids {list(shifted)}": rows})
    yield changed(f"norm_output {str(not drafter.norm_output).lower()}", norm_output=not drafter.norm_output)
    for theta in {_COMMON_THETA, target.rope_theta or _COMMON_THETA} - {drafter.rope_theta}:
        yield changed(f"rope_theta {theta:g}", rope_theta=theta)
    embedding = _targets_embedding(reference, target)
    if embedding is not None:
        yield changed("the target's embed_tokens", {EMBEDDING: embedding})
    weights = model.state_dict()
    if drafter.architecture != "mla":
        heads = {_QUERY: drafter.num_attention_heads, _KEY: drafter.num_key_value_heads}
        for name, order in (("interleaved", _interleaved), ("in halves", _in_halves)):
            yield changed(
                f"rows of q_proj and k_proj that were {name}",
                {each: _by_head(weights[each], count, order) for each, count in heads.items()},
            )
    muted = {name: torch.zeros_like(weight) for name, weight in weights.items() if name.endswith("o_proj.weight")}
    yield changed(MUTED, muted)


def _other_maps(rows: Tensor, vocab: int) -> dict[str, Tensor]:
    """What the head's rows may mean instead: `d2t` not as offsets, or of a neighbouring row."""
    places = torch.arange(len(rows), device=rows.device)
    offsets = rows - places
    maps = {
        "d2t as the target's ids": offsets,
        "d2t of the row before": places + offsets.roll(1),
        "d2t of the row after": places + offsets.roll(-1),
        "the token of the row before": rows.roll(1),
        "the token of the row after": rows.roll(-1),
    }
    return {name: ids for name, ids in maps.items() if offsets.any() and ids.min() >= 0 and ids.max() < vocab}


def _targets_embedding(reference: Reference, target: Target) -> Tensor | None:
    own = reference.model.embed_tokens.weight
    if not reference.model.drafter.embedding or target.folder is None:
        return None
    weights = open_target(target.folder)
    theirs = to_tensor(weights.read(find_shared(weights, EMBEDDING)), "float32").to(own.device)
    return None if theirs.shape != own.shape or torch.equal(theirs, own) else theirs


def _by_head(weight: Tensor, heads: int, order: Any) -> Tensor:
    rows = weight.unflatten(0, (heads, -1))
    return rows[:, order(rows.shape[1])].flatten(0, 1)


def _interleaved(size: int) -> Tensor:
    """Puts even rows before odd ones."""
    return torch.arange(size).unflatten(0, (-1, 2)).T.flatten()


def _in_halves(size: int) -> Tensor:
    """Puts a row of the first half before its partner of the second."""
    return torch.arange(size).unflatten(0, (2, -1)).T.flatten()


def _counted(reading: Reading, features: Features) -> dict[str, tuple[float, float, int]]:
    """Sum of probabilities, accepted tokens and slots of one prompt, for each meaning of the rows."""
    weight = reading.model.norm.weight
    slots = answer_slots(features, _DEPTH)
    tokens = features.tokens.to(weight.device)
    with torch.inference_mode():
        steps = list(reading.model.unroll(features.aux.to(weight)[None], tokens[None, 1:], _DEPTH, slots))
    wanted = [tokens[slots.start + 2 + k : slots.stop + 2 + k] for k in range(_DEPTH)]
    counted = {}
    for name, ids in reading.tokens.items():
        rows = torch.full((reading.model.drafter.vocab_size,), -1, device=weight.device)
        rows[ids] = torch.arange(len(ids), device=weight.device)
        probability, right = 0.0, torch.ones(len(slots), dtype=torch.bool, device=weight.device)
        accepted = 0
        for step, token in zip(steps, wanted, strict=True):
            logits, row = step.logits[0], rows[token]
            given = logits.softmax(-1).gather(1, row.clamp(min=0)[:, None])[:, 0]
            probability += float(given[row >= 0].sum())
            right &= ids[logits.argmax(-1)] == token
            accepted += int(right.sum())
        counted[name] = (probability, float(accepted), len(slots))
    return counted
