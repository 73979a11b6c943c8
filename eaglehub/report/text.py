"""Reports for people: plain lines, coloured only on a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from eaglehub.report.findings import Finding
    from eaglehub.report.report import Report

PIPED_WIDTH = 100

_MARKUP = re.compile(r"([\\`*_\[\]|~#<>&])")
STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
STYLES |= {"pass": "green", "fail": "bold red", "warn": "yellow", "skipped": "dim"}
"""Colours of severities and of verdicts."""


def console_for(stream: TextIO) -> Console:
    """A console that takes text literally: as wide as the terminal, or `PIPED_WIDTH` where there is none."""
    from rich.console import Console

    terminal = stream.isatty()
    return Console(
        file=stream,
        force_terminal=terminal,
        width=None if terminal else PIPED_WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
    )


class LinesConsole:
    """What a report of bare lines needs of a console where there is no terminal; importing rich takes longer than most
    runs of `validate`.
    """

    def __init__(self) -> None:
        self.text = ""

    def print(self, line: str = "", *, style: str = "", end: str = "\n", soft_wrap: bool = True) -> None:  # noqa: ARG002
        """Add a line; there are no colours, and nothing is wrapped."""
        self.text += line + end


def write_text(report: Report, stream: TextIO) -> None:
    """Write the text view of a report."""
    if report.bare_lines and not stream.isatty():
        lines = LinesConsole()
        report.render(cast("Console", lines))
        stream.write(lines.text)
        return
    console = console_for(stream)
    with console.capture() as text:  # rich itself would leave with its own exit code when a pipe breaks
        report.render(console)
    stream.write(text.get())


def print_findings(console: Console, findings: Iterable[Finding]) -> None:
    """Print each finding on one line, its remedy on the next; lines are never wrapped, so they can be searched."""
    for finding in findings:
        place = f"{finding.where}: " if finding.where else ""
        console.print(f"{finding.severity} {finding.code}", style=STYLES[finding.severity], end=" ")
        console.print(escaped(f"{place}{finding.message}"), soft_wrap=True)
        if finding.fix:
            console.print(escaped(f"  fix: {finding.fix}"), soft_wrap=True)


def print_verdict(console: Console, verdict: str, line: str) -> None:
    """Print the verdict on a check, and what was found."""
    console.print(f"  {verdict:<8}", style=STYLES[verdict], end="")
    console.print(escaped(line), soft_wrap=True)


def escaped(text: str) -> str:
    """The text with control and other unprintable characters as escapes: a file's names must not drive a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def escaped_markdown(text: str) -> str:
    """The text on one line of Markdown that shows it as it is."""
    return _MARKUP.sub(r"\\\1", escaped(" ".join(text.split())))
