"""The formats a report can be written in, by name."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, TextIO

from eaglehub.report.text import write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from eaglehub.report.report import Report


def write_json(report: Report, stream: TextIO) -> None:
    """Write the JSON document, in ASCII so that no locale can spoil it."""
    json.dump(report.to_json(), stream, indent=2, allow_nan=False)
    stream.write("\n")


def _lazy(name: str) -> Callable[[Report, TextIO], None]:
    """The reporter `write_NAME` of the module NAME, imported when it is used."""

    def write(report: Report, stream: TextIO) -> None:
        module = importlib.import_module(f"eaglehub.report.{name}")
        getattr(module, f"write_{name}")(report, stream)

    return write


PLAIN = ("text", "json")
"""What every report can be written in."""

REPORTERS: dict[str, Callable[[Report, TextIO], None]] = {
    "text": write_text,
    "json": write_json,
    **{name: _lazy(name) for name in ("lines", "sarif", "junit", "github")},
}
"""Every format; JUnit needs a report with cases (`report.cases`), lines, SARIF and GitHub one with places
(`report.located`).
"""
