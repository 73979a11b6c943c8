"""GitHub Actions: annotations on the lines concerned, and the job's summary."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from eaglehub.report.located import located
from eaglehub.report.text import escaped, escaped_markdown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eaglehub.report.findings import Finding
    from eaglehub.report.located import Judged, LocatedReport, Place
    from eaglehub.report.report import Report

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
# Where a runner wants the summary of the job; of a step that writes more than so much, it shows nothing at all.
_SUMMARY = "GITHUB_STEP_SUMMARY"
_SUMMARY_BYTES = 1 << 20
_CUT = "\nMore does not fit into a summary; the other reports have it all.\n"


def write_github(report: Report, stream: TextIO) -> None:
    """Write one workflow command a finding; where the runner asks for a summary, append a table to it."""
    source = located(report)
    for judged in source.judged():
        stream.writelines(_command(finding, place) for finding, place in judged.findings)
    if summary := os.environ.get(_SUMMARY):
        _append(Path(summary), (f"{line}\n" for line in _table(source)))


def _append(summary: Path, lines: Iterable[str]) -> None:
    """Add the lines that fit, or none where not even the remark on the others does."""
    room = _SUMMARY_BYTES - len(_CUT) - (summary.stat().st_size if summary.exists() else 0)
    if room < 0:
        return
    with summary.open("a", encoding="utf-8") as file:
        for line in lines:
            room -= len(line.encode())
            file.write(line if room >= 0 else _CUT)
            if room < 0:
                return


def _command(finding: Finding, place: Place) -> str:
    properties = {"file": place.file, "line": str(place.line), "title": f"{finding.code} {finding.where}".strip()}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    fix = f" Fix: {finding.fix}" if finding.fix else ""
    return f"::{_COMMANDS[finding.severity]} {listed}::{_data(escaped(finding.message + fix))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(escaped(text)).replace(":", "%3A").replace(",", "%2C")


def _table(source: LocatedReport) -> Iterable[str]:
    judged = list(source.judged())
    yield "### eaglehub validate"
    yield ""
    if not any(each.findings for each in judged):
        yield f"{len(judged)} drafter{'s' * (len(judged) > 1)}: nothing found."
        return
    yield "| drafter | rule | | where | what | fix |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for each in judged:
        yield from (_row(each, finding) for finding, _ in each.findings)


def _row(judged: Judged, finding: Finding) -> str:
    cells = (judged.name, finding.code, str(finding.severity), finding.where, finding.message, finding.fix)
    return f"| {' | '.join(map(escaped_markdown, cells))} |"
