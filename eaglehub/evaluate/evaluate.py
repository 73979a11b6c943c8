"""Evaluation: a drafter's acceptance and drift on the target's own greedy answers, suite by suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglehub.errors import UnusableInput
from eaglehub.evaluate.load import load_model
from eaglehub.features import extract
from eaglehub.reading import read_drafter
from eaglehub.report.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.target import Target
    from eaglehub.evaluate.score import Score
    from eaglehub.features import Recipe, Sample, Source
    from eaglehub.reading import Answers, Reading


@dataclass(frozen=True, slots=True)
class Candidate:
    """A drafter to evaluate."""

    checkpoint: Checkpoint
    reading: Reading
    drafter: Drafter

    def layer_ids(self, target: Target) -> tuple[int, ...]:
        """The target states that it reads, in the IN convention."""
        if not self.drafter.num_aux_hidden_states:  # it reads what lm_head does, which comes with any state
            return (target.num_hidden_layers,)
        return self.drafter.aux_layer_ids or target.default_aux_layer_ids()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A candidate's scores by suite."""

    candidate: Candidate
    scores: Mapping[str, Score]


def read_candidate(
    checkpoint: Checkpoint, target: Target, *, forced_format: str | None = None, answers: Answers | None = None
) -> Candidate:
    """Read a drafter of any producer for a target.

    Raises:
        UnusableInput: it cannot be read without doubt, or does not fit the target.
    """
    reading = read_drafter(checkpoint, forced_format=forced_format, answers=answers, target=target)
    if reading.drafter is None:
        worst = next(finding for finding in reading.findings if finding.severity is Severity.ERROR)
        raise UnusableInput(worst.message, where=worst.where, fix=worst.fix, code=worst.code)
    return Candidate(checkpoint, reading, reading.drafter)


def recipes(
    candidate: Candidate, source: Source, suites: Mapping[str, Sequence[Sample]], max_tokens: int, ignore_eos: bool
) -> list[Recipe]:
    """What the candidate reads of the target, for each suite in order."""
    ids = candidate.layer_ids(source.target)
    return [source.recipe(samples, ids, max_tokens=max_tokens, ignore_eos=ignore_eos) for samples in suites.values()]


def evaluate(
    candidate: Candidate,
    source: Source,
    wanted: Mapping[str, Recipe],
    root: Path,
    depth: int,
    progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Score a candidate on every suite.

    Args:
        candidate: the drafter.
        source: its target.
        wanted: suite to recipe.
        root: folder of feature stores.
        depth: draft positions K to judge.
        progress: called with the number of bytes of target states since the last call.
    """
    from eaglehub.evaluate.score import score

    model = load_model(candidate.checkpoint, candidate.reading.tensors.values(), candidate.drafter, source.folder)
    stores = extract(source, list(wanted.values()), root, progress)
    scores = {name: score(model, store, depth) for name, store in zip(wanted, stores, strict=True)}
    return Evaluation(candidate, scores)
