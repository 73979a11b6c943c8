"""Reports as pages for people: Markdown and HTML, from the JSON that commands write."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from eaglehub.report.report import Report

__all__ = ["PAGES", "write_html", "write_markdown"]


# What makes pages is imported when one is made: every command offers these formats, and few are asked for them.
def write_markdown(report: Report, stream: TextIO) -> None:
    """Write a report as Markdown that fits a job summary."""
    from eaglehub.pages.write import markdown, page_of

    stream.write(markdown(page_of(report)))


def write_html(report: Report, stream: TextIO) -> None:
    """Write a report as one HTML page that loads nothing and runs no script."""
    from eaglehub.pages.write import html, page_of

    stream.write(html(page_of(report)))


PAGES = {"markdown": write_markdown, "html": write_html}
"""The formats of pages, by name, beside those of `report.formats`."""
