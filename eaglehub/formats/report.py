"""What `eaglehub formats` reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.report.report import Report

if TYPE_CHECKING:
    from rich.console import Console

    from eaglehub.formats.spec import FormatSpec

_CONVENTIONS = {"in": "IN", "out": "OUT", "": "asked"}


@dataclass(frozen=True)
class FormatsReport(Report):
    """Some or all format specs."""

    kind: ClassVar[str] = "formats"
    specs: tuple[FormatSpec, ...]
    detailed: bool = False

    def data(self) -> dict[str, Any]:
        """One object a format."""
        return {"formats": [_data(spec) for spec in self.specs]}

    def render(self, console: Console) -> None:
        """A table, or all that is known about one format."""
        if self.detailed:
            for spec in self.specs:
                _render_one(console, spec)
            return
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD)
        for heading in ("format", "read", "written", "nested ids", "who"):
            table.add_column(heading, overflow="fold")
        for spec in self.specs:
            ids = _CONVENTIONS[spec.layer_ids.convention] if spec.layer_ids.nested else "-"
            table.add_row(spec.id, _yes(bool(spec.detect)), _yes(spec.writer is not None), ids, spec.title)
        console.print(table)


def _yes(value: bool) -> str:
    return "yes" if value else "-"


def _data(spec: FormatSpec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "title": spec.title,
        "about": spec.about,
        "read": bool(spec.detect),
        "written": spec.writer is not None,
        "layer_ids": {"nested": spec.layer_ids.nested or None, "convention": spec.layer_ids.convention or None},
        "tensors": [{"source": rule.source, "canonical": rule.canonical} for rule in spec.renames],
        "dropped": [{"source": rule.source, "reason": rule.reason} for rule in spec.drops],
        "dropped_config_keys": dict(spec.drop_keys),
        "cannot_hold": dict(spec.writer.cannot) if spec.writer else {},
    }


def _render_one(console: Console, spec: FormatSpec) -> None:
    console.print(f"{spec.id}: {spec.title}", style="bold")
    console.print(spec.about)
    sections = {
        "tensors (source = canonical)": {rule.source: rule.canonical for rule in spec.renames},
        "dropped tensors": {rule.source: rule.reason for rule in spec.drops},
        "dropped config keys": spec.drop_keys,
        "uncertain": {flag: rule.why for flag, rule in spec.flags.items() if rule.why}
        | ({"layer ids": spec.layer_ids.why} if spec.layer_ids.why else {})
        | ({"RoPE base": spec.rope["why"]} if spec.rope else {}),
        "cannot hold": spec.writer.cannot if spec.writer else {},
    }
    for title, entries in sections.items():
        if entries:
            console.print(f"\n{title}")
            for name, text in entries.items():
                console.print(f"  {name}: {text}", soft_wrap=True)
