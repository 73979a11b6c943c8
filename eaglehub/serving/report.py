"""What `eaglehub serve-command` reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.report.findings import has_errors
from eaglehub.report.report import Report

if TYPE_CHECKING:
    from rich.console import Console

    from eaglehub.report.findings import Finding
    from eaglehub.serving.command import ServeCommand


@dataclass(frozen=True)
class ServeReport(Report):
    """The command line, or why there is none.

    Attributes:
        engine: its name and version.
        findings: what is wrong with the drafter as this engine would read it.
        command: None where a finding is an error.
        unreadable: the exit code of the input or machine problem met on the way, else 0.
    """

    kind: ClassVar[str] = "serve-command"
    bare_lines: ClassVar[bool] = True
    engine: str
    findings: tuple[Finding, ...]
    command: ServeCommand | None
    unreadable: int = 0

    @property
    def exit_code(self) -> int:
        """1 when it must not be served, that of the input or the machine when it could not be looked at."""
        return self.unreadable or int(has_errors(self.findings))

    def data(self) -> dict[str, Any]:
        """See `schemas/report-serve-command.schema.json`."""
        return {
            "engine": self.engine,
            "argv": list(self.command.argv) if self.command else None,
            "notes": list(self.command.notes) if self.command else [],
            "findings": [finding.to_json() for finding in self.findings],
        }

    def render(self, console: Console) -> None:
        """Print the line and nothing else, so that a shell can take it."""
        if self.command:
            console.print(self.command.line, soft_wrap=True)
