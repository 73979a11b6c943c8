"""Renders pages with the templates, and escapes what is put in."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.pages.build import build_page
from eaglehub.report.report import Report
from eaglehub.report.text import escaped, escaped_markdown
from eaglehub.resources import resource

if TYPE_CHECKING:
    from jinja2 import Environment
    from rich.console import Console

    from eaglehub.pages.page import Bar, Bars, Page

_STRIPE = 12


@dataclass(frozen=True, slots=True)
class PageReport(Report):
    """A page as a command's result; in a terminal its Markdown is laid out."""

    kind: ClassVar[str] = "page"
    page: Page

    def data(self) -> dict[str, Any]:
        """Nothing more than the page shows: what it was made from is JSON already."""
        return {}

    def render(self, console: Console) -> None:
        """Print it."""
        from rich.markdown import Markdown

        console.print(Markdown(markdown(self.page)))


def page_of(report: Report) -> Page:
    """The page of a report of one of the kinds that there are pages for."""
    return report.page if isinstance(report, PageReport) else build_page(report.to_json())


def markdown(page: Page) -> str:
    """The page in Markdown with tables, as GitHub has them."""
    return _environment("markdown").get_template("page.md.j2").render(page=page, stripe=_stripe)


def html(page: Page) -> str:
    """The page as a document of its own."""
    return _environment("html").get_template("page.html.j2").render(page=page)


@functools.cache
def _environment(kind: str) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(resource("templates")),
        # What is put in may come from a stranger's checkpoint; the template's own markup is not touched.
        autoescape=kind == "html",  # noqa: S701 - Markdown is escaped by what follows
        finalize=_printable if kind == "html" else _escape_markdown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _printable(value: object) -> object:
    return "\n".join(map(escaped, str(value).split("\n")))


def _escape_markdown(value: object) -> str:
    return escaped_markdown(str(value))


def _stripe(bars: Bars, bar: Bar) -> str:
    """A bar of text."""
    return "\u2588" * round(_STRIPE * bar.value / bars.top)
