"""The case at hand: everything that the steps of a reading look at, and the journal that they write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eaglehub.reading.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.target import Target
    from eaglehub.formats.spec import FormatSpec
    from eaglehub.plan.plan import TensorStep
    from eaglehub.reading.journal import Answers


@dataclass(slots=True)
class Case:
    """One checkpoint being read.

    Attributes:
        checkpoint: the source.
        spec: its format.
        config: its config, with a nested layer config lifted to the top level.
        tensors: canonical name to the step that makes it; the steps of the reading put these in canonical form.
        answers: what the user said about open questions.
        target: the target's facts, when given.
        journal: findings, resolutions and reasons so far.
        values: whether tensors may be looked into.
    """

    checkpoint: Checkpoint
    spec: FormatSpec
    config: Mapping[str, Any]
    tensors: dict[str, TensorStep]
    answers: Answers
    target: Target | None
    journal: Journal = field(default_factory=Journal)
    values: bool = True

    def typed(self, key: str, kind: type, config: Mapping[str, Any] | None = None) -> Any:
        """A config value if it is of that kind (an int may stand for a float); None when absent, null or another kind.

        Another kind is an error finding. `config` is a nested object to look into instead.
        """
        value = (self.config if config is None else config).get(key)
        kinds = (int, float) if kind is float else (kind,)
        if value is None or (isinstance(value, kinds) and (kind is bool or not isinstance(value, bool))):
            return kind(value) if value is not None else None
        self.journal.error("EH201", f"{key} is {value!r}, not a {kind.__name__}", where=f"config.json: {key}")
        return None
