"""The report of `eaglehub diff`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.diff.config import ConfigDiff, diff_configs
from eaglehub.diff.tensors import TensorChange, TensorDiff, bytes_to_compare, diff_tensors
from eaglehub.report.report import Report
from eaglehub.report.text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from eaglehub.checkpoint import Checkpoint, TensorInfo

__all__ = ["DiffReport", "bytes_to_compare", "diff_checkpoints"]

_STYLES = {"+": "green", "-": "red", ">": "cyan", "~": "yellow"}


@dataclass(frozen=True, slots=True)
class DiffReport(Report):
    """What differs between the drafters named `before` and `after`, of these commits where they are from the Hub."""

    kind: ClassVar[str] = "diff"

    before: str
    after: str
    config: ConfigDiff
    tensors: TensorDiff
    before_revision: str | None = None
    after_revision: str | None = None

    @property
    def exit_code(self) -> int:
        """1 when anything differs."""
        return int(bool(self.config or self.tensors))

    def data(self) -> dict[str, Any]:
        """See `schemas/report-diff.schema.json`."""
        config, tensors = self.config, self.tensors
        return {
            "before": self.before,
            "before_revision": self.before_revision,
            "after": self.after,
            "after_revision": self.after_revision,
            "same": self.exit_code == 0,
            "config": {
                "added": [{"key": key, "value": value} for key, value in config.added.items()],
                "removed": [{"key": key, "value": value} for key, value in config.removed.items()],
                "changed": [{"key": key, "before": old, "after": new} for key, (old, new) in config.changed.items()],
            },
            "tensors": {
                "added": [{"name": info.name, **_kind(info)} for info in tensors.added],
                "removed": [{"name": info.name, **_kind(info)} for info in tensors.removed],
                "renamed": [{"before": old.name, "after": new.name, **_kind(old)} for old, new in tensors.renamed],
                "changed": [_change(change) for change in tensors.changed],
                "same": tensors.same,
                "not_compared": tensors.not_compared,
            },
        }

    def render(self, console: Console) -> None:
        """Print one difference a line: `+` only in the second, `-` only in the first, `>` renamed, `~` changed."""
        before, after = _at(self.before, self.before_revision), _at(self.after, self.after_revision)
        console.print(escaped(f"{before} -> {after}"), style="bold", soft_wrap=True)
        for title, lines, same in (
            ("config", _config_lines(self.config), "the same"),
            ("tensors", _tensor_lines(self.tensors), f"{self.tensors.same} the same"),
        ):
            console.print(title, style="bold")
            for sign, text in lines:
                console.print(escaped(f"  {sign} {text}"), style=_STYLES[sign], soft_wrap=True)
            if title == "tensors" or not self.config:
                console.print(f"  {same}")
        if self.tensors.not_compared:
            why = "the files differ, and their values were not read (--values)"
            console.print(f"  {self.tensors.not_compared} not compared: {why}", soft_wrap=True)


def diff_checkpoints(before: Checkpoint, after: Checkpoint, advance: Callable[[int], None]) -> DiffReport:
    """Compare two drafters; `advance` hears how many bytes were read, `bytes_to_compare` in all.

    Raises:
        UnusableInput: weights cannot be read.
    """
    return DiffReport(
        before=before.name,
        after=after.name,
        config=diff_configs(before.config, after.config),
        tensors=diff_tensors(before, after, advance),
        before_revision=before.revision,
        after_revision=after.revision,
    )


def _at(name: str, revision: str | None) -> str:
    return f"{name}@{revision}" if revision else name


def _kind(info: TensorInfo) -> dict[str, Any]:
    return {"dtype": info.dtype, "shape": list(info.shape)}


def _change(change: TensorChange) -> dict[str, Any]:
    values = change.values and {
        "max_abs_difference": change.values.max_abs,
        "differing_share": change.values.share,
    }
    return {"name": change.before.name, "before": _kind(change.before), "after": _kind(change.after), "values": values}


def _config_lines(config: ConfigDiff) -> Iterator[tuple[str, str]]:
    yield from (("+", f"{key} = {json.dumps(value)}") for key, value in config.added.items())
    yield from (("-", f"{key} = {json.dumps(value)}") for key, value in config.removed.items())
    for key, (old, new) in config.changed.items():
        yield "~", f"{key}: {json.dumps(old)} -> {json.dumps(new)}"


def _tensor_lines(tensors: TensorDiff) -> Iterator[tuple[str, str]]:
    yield from (("+", f"{info.name} {_words(info)}") for info in tensors.added)
    yield from (("-", f"{info.name} {_words(info)}") for info in tensors.removed)
    yield from ((">", f"{old.name} -> {new.name} {_words(old)}") for old, new in tensors.renamed)
    for change in tensors.changed:
        yield "~", f"{change.before.name} {_what_changed(change)}"


def _words(info: TensorInfo) -> str:
    return f"{info.dtype} {list(info.shape)}"


def _what_changed(change: TensorChange) -> str:
    old, new, values = _words(change.before), _words(change.after), change.values
    kind = old if old == new else f"{old} -> {new}"
    if values is None:
        return kind
    if not values.share:
        return f"{kind}: equal values"
    distance = "values that are not finite" if values.max_abs is None else f"at most {values.max_abs:.6g}"
    return f"{kind}: {values.share:.4%} of the elements differ, by {distance}"
