"""The report every reporting command returns: JSON data with a schema, a text view and an exit code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub import __version__

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA_VERSION = 1


class Report(ABC):
    """A command's result.

    `kind` names the JSON Schema: `schemas/report-{kind}.schema.json`. With `bare_lines`, the text view is
    nothing but lines that need no wrapping.
    """

    kind: ClassVar[str]
    bare_lines: ClassVar[bool] = False

    @property
    def exit_code(self) -> int:
        """0 ok, 1 findings or a missed threshold."""
        return 0

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """The fields of this kind of report, JSON-ready."""

    @abstractmethod
    def render(self, console: Console) -> None:
        """Print it for a person."""

    def to_json(self) -> dict[str, Any]:
        """The whole JSON document."""
        return {"schema_version": SCHEMA_VERSION, "kind": self.kind, "eaglehub": __version__, **self.data()}
