"""One line a finding, with its file and line first, as compilers write them: for editors, hooks and grep."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from eaglehub.report.located import located
from eaglehub.report.text import escaped

if TYPE_CHECKING:
    from eaglehub.report.findings import Finding
    from eaglehub.report.located import Place
    from eaglehub.report.report import Report


def write_lines(report: Report, stream: TextIO) -> None:
    """Write the findings of all drafters; nothing where there are none."""
    for judged in located(report).judged():
        stream.writelines(_line(finding, place) for finding, place in judged.findings)


def _line(finding: Finding, place: Place) -> str:
    fix = f" (fix: {finding.fix})" if finding.fix else ""
    return escaped(f"{place.file}:{place.line}: {finding.severity} {finding.code} {finding.message}{fix}") + "\n"
