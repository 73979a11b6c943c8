"""Pieces of Markdown."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONVENTIONS = {"in": "IN", "out": "OUT", "sglang": "OUT, with exceptions by target"}


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Lines of a table."""
    yield _row(heads)
    yield _row("--" for _ in heads)
    yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def code(text: str) -> str:
    """A name; a bar would end a table's cell, so that becomes what HTML calls it."""
    if "|" in text:
        return f"<code>{escape(text).replace('|', '&#124;')}</code>"
    return f"`{text}`" if text else ""


def yes(value: object) -> str:
    """For a cell."""
    return "yes" if value else "-"


def plain(text: str) -> str:
    """Text in which Markdown finds no markup but `code`."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([<>*_\[\]])", r"\\\1", part) for part in parts)
