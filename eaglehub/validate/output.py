"""What every written drafter must pass before it becomes the output of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.engines import ENGINES, load_engine
from eaglehub.report.findings import Severity
from eaglehub.validate.judge import Settings, judge

if TYPE_CHECKING:
    from pathlib import Path

    from eaglehub.drafter.target import Target
    from eaglehub.report.findings import Finding

# Layouts that are read under another name.
_READ_AS = {"sglang": "vllm"}
# What a layout does not say about itself, and what an engine's release supports, are no faults of what was written.
_NOT_OURS = ("EH701", "EH702", "EH704", "EH8")


def output_faults(folder: Path, layout: str, target: Target | None) -> list[Finding]:
    """The errors of a finished folder in that layout; its values were looked at while they were written."""
    engine = load_engine(layout) if layout in ENGINES else None
    settings = Settings(engine=engine, target=target, values=False, forced_format=_READ_AS.get(layout, layout))
    return [
        finding
        for finding in judge(folder, settings).findings
        if finding.severity is Severity.ERROR and not finding.code.startswith(_NOT_OURS)
    ]
