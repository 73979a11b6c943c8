"""What `eaglehub convert` reports: the plan and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.formats.config_paths import MISSING
from eaglehub.report.report import Report
from eaglehub.report.text import escaped, print_findings

if TYPE_CHECKING:
    from rich.console import Console

    from eaglehub.convert.convert import Conversion
    from eaglehub.plan.plan import ConfigEdit, Plan

_HEADLINES = {
    "converted": "wrote {output}",
    "unchanged": "nothing to convert: {source} is already in the {layout} layout",
    "copied": "nothing to convert: {source} is already in the {layout} layout; copied as it is to {output}",
    "planned": "dry run: nothing was written",
    "would change": "converting {source} would change it",
    "refused": "not converted: see the errors",
}


@dataclass(frozen=True)
class ConvertReport(Report):
    """The report of one conversion.

    Attributes:
        conversion: what was planned.
        layout: the layout asked for.
        status: a key of `_HEADLINES`.
        output: the destination as the user wrote it; empty when nothing was written.
        detailed: whether the text view lists the whole plan.
    """

    kind: ClassVar[str] = "convert"
    conversion: Conversion
    layout: str
    status: str
    output: str = ""
    detailed: bool = False

    @property
    def exit_code(self) -> int:
        """1 when refused, or when `--check` found something to change."""
        return int(self.status in ("refused", "would change"))

    def data(self) -> dict[str, Any]:
        """The plan in full, whatever the text view shows."""
        reading, plan = self.conversion.reading, self.conversion.plan
        return {
            "source": {
                "name": self.conversion.checkpoint.name,
                "revision": self.conversion.checkpoint.revision,
                "format": reading.detection.spec.id,
                "evidence": list(reading.detection.evidence),
            },
            "layout": self.layout,
            "status": self.status,
            "output": self.output or None,
            "findings": [finding.to_json() for finding in self.conversion.findings],
            "resolutions": [resolution.to_json() for resolution in reading.resolutions],
            "plan": _plan_data(plan) if plan else None,
        }

    def render(self, console: Console) -> None:
        """One screen, or the whole plan."""
        reading, plan = self.conversion.reading, self.conversion.plan
        detection = reading.detection
        console.print(f"source  {self.conversion.checkpoint.name}: {detection.spec.title}", style="bold")
        console.print(escaped(f"        because of {', '.join(detection.evidence)}"), soft_wrap=True)
        if plan:
            _render_plan(console, plan) if self.detailed and plan.changes else _render_counts(console, plan)
        print_findings(console, self.conversion.findings)
        names = {"source": self.conversion.checkpoint.name, "layout": self.layout, "output": self.output}
        console.print(escaped(_HEADLINES[self.status].format(**names)), style="bold", soft_wrap=True)


def _plan_data(plan: Plan) -> dict[str, Any]:
    return {
        "digest": plan.digest,
        "tensors": [
            {
                "name": step.name,
                "source": step.source,
                "operation": step.describe(),
                "dtype": step.dtype,
                "shape": list(step.shape),
            }
            for step in plan.steps
        ],
        "dropped": [{"name": item.name, "reason": item.reason} for item in plan.dropped],
        "config": plan.config,
        "config_edits": [edit.to_json() for edit in plan.edits],
        "files": list(plan.files),
    }


def _render_counts(console: Console, plan: Plan) -> None:
    copied = sum(step.verbatim and step.name == step.source for step in plan.steps)
    renamed = sum(step.verbatim and step.name != step.source for step in plan.steps)
    computed = len(plan.steps) - copied - renamed
    counts = {"copied": copied, "renamed": renamed, "recomputed or new": computed, "dropped": len(plan.dropped)}
    words = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    console.print(
        f"plan    {words}; {len(plan.edits)} config keys change ({plan.source} to {plan.layout})", soft_wrap=True
    )


def _render_plan(console: Console, plan: Plan) -> None:
    lines = [("tensors", "")]
    lines += [(f"  {step.name}", f"{step.describe()}  [{step.dtype} {list(step.shape)}]") for step in plan.steps]
    lines += [(f"  {item.name}", f"dropped: {item.reason}") for item in plan.dropped]
    lines += [("config.json", "")]
    lines += [(f"  {edit.key}", f"{_change(edit)}  {f'({edit.reason})' if edit.reason else ''}") for edit in plan.edits]
    lines += [(f"  {name}", "copied") for name in plan.files]
    width = max(len(left) for left, _ in lines)
    for left, right in lines:
        console.print(escaped(f"{left:{width}}  {right}".rstrip()), soft_wrap=True)


def _change(edit: ConfigEdit) -> str:
    before, after = (str(side) for side in (edit.before, edit.after))
    if edit.before is MISSING:
        return f"added {after}"
    return f"removed {before}" if edit.after is MISSING else f"{before} -> {after}"
