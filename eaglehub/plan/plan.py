"""A plan: every output tensor with its operations, every config edit with its reason, before a byte is written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import numpy_dtype
from eaglehub.formats.config_paths import MISSING, flat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

    from eaglehub.checkpoint import Checkpoint, OutputTensor
    from eaglehub.plan.operations import Operation, Shape


@dataclass(frozen=True, slots=True)
class TensorStep:
    """One output tensor.

    Attributes:
        name: its name in the output.
        source: the source tensor, or None for a new one.
        dtype, shape: of the result.
        operations: applied in order to the source.
        fill: value of every element of a new tensor.
        reason: why a new tensor is needed.
        origin: the checkpoint that holds the source, where it is another than the one being converted.
    """

    name: str
    source: str | None
    dtype: str
    shape: Shape
    operations: tuple[Operation, ...] = ()
    fill: float = 0
    reason: str = ""
    origin: Checkpoint | None = None

    def then(self, operation: Operation) -> TensorStep:
        """The step with one more operation."""
        return replace(
            self,
            dtype=operation.dtype(self.dtype),
            shape=operation.shape(self.shape),
            operations=(*self.operations, operation),
        )

    def named(self, name: str) -> TensorStep:
        """The step with another output name."""
        return replace(self, name=name)

    @property
    def verbatim(self) -> bool:
        """Whether the source's bytes are copied as they are."""
        return self.source is not None and not self.operations and self.origin is None

    def describe(self) -> str:
        """The operation in words."""
        if self.source is None:
            return f"new, all {self.fill}: {self.reason}"
        origin = "copy" if self.source == self.name else f"from {self.source}"
        origin = f"{origin} of {self.origin.name}" if self.origin else origin
        return ", ".join([origin, *(operation.describe() for operation in self.operations)])

    def output(self, checkpoint: Checkpoint) -> OutputTensor:
        """The tensor for the writer; its bytes are made when asked for."""
        from eaglehub.checkpoint import OutputTensor

        return OutputTensor(self.name, self.dtype, self.shape, lambda: self._chunks(self.origin or checkpoint))

    def _chunks(self, checkpoint: Checkpoint) -> Iterator[np.ndarray]:
        if self.source is None:
            import numpy as np

            yield np.full(self.shape, self.fill, dtype=numpy_dtype(self.dtype))
            return
        shape = checkpoint.tensors[self.source].shape
        streams = all(operation.by_rows(shape) for operation in self.operations)
        for chunk in checkpoint.chunks(self.source) if streams else [checkpoint.read(self.source)]:
            for operation in self.operations:
                chunk = operation.apply(chunk)
            yield chunk


@dataclass(frozen=True, slots=True)
class Dropped:
    """A source tensor or file that has no place in the output, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConfigEdit:
    """A changed config key (dotted path); `MISSING` stands for absent."""

    key: str
    before: Any
    after: Any
    reason: str

    def to_json(self) -> dict[str, Any]:
        """`before` and `after` are left out where the key is absent."""
        edit = {"key": self.key, "reason": self.reason}
        edit |= {} if self.before is MISSING else {"before": self.before}
        return edit | ({} if self.after is MISSING else {"after": self.after})


def config_edits(before: Mapping[str, Any], after: Mapping[str, Any], reasons: Mapping[str, str]) -> list[ConfigEdit]:
    """What changes between two configs, leaf by leaf.

    A key's reason is that of the key itself or of its nearest parent.
    """
    old, new = dict(flat(before)), dict(flat(after))
    return [
        ConfigEdit(key, old.get(key, MISSING), new.get(key, MISSING), _reason(key, reasons))
        for key in dict.fromkeys([*old, *new])
        if (key in old) != (key in new) or not _equal(old[key], new[key])
    ]


def _equal(one: Any, other: Any) -> bool:
    """Equal in JSON, where 10000 and 10000.0 are the same number but 1 is not true."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _reason(key: str, reasons: Mapping[str, str]) -> str:
    while key not in reasons and "." in key:
        key = key.rpartition(".")[0]
    return reasons.get(key, "")


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a conversion does, decided on metadata and small tensors alone.

    Attributes:
        source, layout: format ids of the source and of the output.
        steps: the output's tensors in file order.
        dropped: source tensors and files left behind.
        config: the output's config.json.
        edits: how it differs from the source's.
        files: companions (tokenizer, licence, card) that are copied as they are.
    """

    source: str
    layout: str
    steps: tuple[TensorStep, ...]
    dropped: tuple[Dropped, ...]
    config: dict[str, Any]
    edits: tuple[ConfigEdit, ...]
    files: tuple[str, ...]

    @property
    def changes(self) -> int:
        """How many tensors and config keys differ between source and output."""
        tensors = sum(not step.verbatim or step.source != step.name for step in self.steps)
        return tensors + len(self.dropped) + len(self.edits)

    @property
    def digest(self) -> str:
        """Sha256 of the plan's content: equal plans on equal sources give equal bytes."""
        content = {
            "layout": self.layout,
            "config": self.config,
            "files": list(self.files),
            "tensors": [[step.name, step.describe(), step.dtype, list(step.shape)] for step in self.steps],
            "dropped": [[item.name, item.reason] for item in self.dropped],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
