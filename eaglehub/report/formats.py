"""The formats a report can be written in, by name."""

from __future__ import annotations

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


REPORTERS: dict[str, Callable[[Report, TextIO], None]] = {"text": write_text, "json": write_json}
