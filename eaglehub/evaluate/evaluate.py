"""Evaluation: a drafter's acceptance and drift on the target's own greedy answers, suite by suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglehub.features import extract
from eaglehub.scoring.load import load_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from eaglehub.features import Extraction, Sample, Source
    from eaglehub.scoring.candidate import Candidate
    from eaglehub.scoring.score import Score


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A candidate's scores by suite."""

    candidate: Candidate
    scores: Mapping[str, Score]


def extractions(
    candidate: Candidate, source: Source, suites: Mapping[str, Sequence[Sample]], max_tokens: int, ignore_eos: bool
) -> list[Extraction]:
    """What the candidate reads of the target, for each suite in order."""
    ids = source.target.layer_ids_for(candidate.drafter)
    return [
        source.extraction(samples, ids, max_tokens=max_tokens, ignore_eos=ignore_eos) for samples in suites.values()
    ]


def evaluate(
    candidate: Candidate,
    source: Source,
    wanted: Mapping[str, Extraction],
    root: Path,
    depth: int,
    progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Score a candidate on every suite.

    Args:
        candidate: the drafter.
        source: its target.
        wanted: suite to extraction.
        root: folder of feature stores.
        depth: draft positions K to judge.
        progress: called with the number of bytes of target states since the last call.
    """
    from eaglehub.scoring.score import score

    model = load_model(candidate.checkpoint, candidate.reading.tensors.values(), candidate.drafter, source.folder)
    stores = extract(source, list(wanted.values()), root, progress)
    scores = {name: score(model, store, depth) for name, store in zip(wanted, stores, strict=True)}
    return Evaluation(candidate, scores)
