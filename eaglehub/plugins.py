"""Formats and rules of other people: modules of installed packages that announce them as entry points."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub.errors import EnvironmentProblem

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from types import ModuleType

FORMATS, RULES = "eaglehub.formats", "eaglehub.rules"

# Where an installed package keeps its entry points, and how those of a plugin begin.
_ENTRY_POINTS = "*-info/entry_points.txt"
_MARK = b"[eaglehub."


@dataclass(frozen=True, slots=True)
class Plugin:
    """One module of a package that extends eaglehub.

    Attributes:
        package: name and version of the distribution.
        module: what the entry point names.
    """

    package: str
    module: ModuleType

    def files(self, pattern: str) -> list[Path]:
        """The files in the module's folder that fit the pattern; none where it is no package."""
        folders = getattr(self.module, "__path__", ())
        return sorted(file for folder in folders for file in Path(folder).glob(pattern))

    def problem(self, what: str) -> EnvironmentProblem:
        """An error that names the package."""
        return _problem(self.package, what)


@cache
def load_plugins(group: str) -> tuple[Plugin, ...]:
    """Every plugin of a group, by name.

    Raises:
        EnvironmentProblem: one of them cannot be imported.
    """
    if not _announced():
        return ()
    from importlib.metadata import entry_points

    return tuple(_load(entry) for entry in sorted(entry_points(group=group), key=lambda entry: entry.name))


def _load(entry: EntryPoint) -> Plugin:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    try:
        module: Any = entry.load()
    except Exception as error:
        raise _problem(package, f"{entry.value} cannot be imported: {type(error).__name__}: {error}") from error
    return Plugin(package, module)


def _problem(package: str, what: str) -> EnvironmentProblem:
    return EnvironmentProblem(what, where=f"plugin {package}", fix="mend or uninstall it")


@cache
def _announced() -> bool:
    """Whether any installed package extends eaglehub.

    The library that knows for certain takes ten times as long to import as these files to read.
    """
    found = (file for path in sys.path for file in Path(path).glob(_ENTRY_POINTS))
    return any(_MARK in file.read_bytes() for file in found)
