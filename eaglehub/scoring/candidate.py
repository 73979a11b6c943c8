"""A drafter that is to be run and judged: a checkpoint of any producer, read for its target without doubt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglehub.reading import read_drafter
from eaglehub.report.findings import refusal

if TYPE_CHECKING:
    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.target import Target
    from eaglehub.reading import Answers, Reading


@dataclass(frozen=True, slots=True)
class Candidate:
    """A drafter, with the checkpoint and the reading that it comes from."""

    checkpoint: Checkpoint
    reading: Reading
    drafter: Drafter


def read_candidate(
    checkpoint: Checkpoint, target: Target, *, forced_format: str | None = None, answers: Answers | None = None
) -> Candidate:
    """Read a drafter of any producer for a target.

    Raises:
        UnusableInput: it cannot be read without doubt, or does not fit the target.
    """
    reading = read_drafter(checkpoint, forced_format=forced_format, answers=answers, target=target)
    if reading.drafter is None:
        raise refusal(reading.findings)
    return Candidate(checkpoint, reading, reading.drafter)
