"""A YAML document with the line of each of its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says, and where.

    Attributes:
        lines: from 1 on, of every key and list item by its path.
    """

    name: str
    value: Any
    lines: Mapping[KeyPath, int]

    def problem(self, what: str, path: KeyPath = (), fix: str = "") -> UnusableInput:
        """An error at a key, or at the nearest key above it that is in the file."""
        at = path
        while at and at not in self.lines:
            at = at[:-1]
        key = ".".join(map(str, path))
        return UnusableInput(f"{key}: {what}" if key else what, where=f"{self.name}:{self.lines.get(at, 1)}", fix=fix)


def read_document(path: Path) -> Document:
    """Read a YAML file.

    Raises:
        UnusableInput: it is missing, no YAML, or says something twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UnusableInput(f"cannot read it: {reason}", where=str(path)) from error
    document = Document(path.name, None, {})
    try:
        root = yaml.compose(text, yaml.SafeLoader)
        lines: dict[KeyPath, int] = {}
        if root is not None:
            _walk(root, (), lines, document)
        return Document(path.name, yaml.safe_load(text), lines)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UnusableInput(f"it is no YAML: {error.problem}", where=f"{path.name}:{line}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UnusableInput("it is no YAML", where=path.name) from error


def _walk(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], document: Document) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            if here in lines:
                raise UnusableInput(
                    f"{'.'.join(map(str, here))}: it is there twice",
                    where=f"{document.name}:{key.start_mark.line + 1}",
                    fix=f"first on line {lines[here]}",
                )
            lines[here] = key.start_mark.line + 1
            _walk(value, here, lines, document)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            lines[*path, number] = item.start_mark.line + 1
            _walk(item, (*path, number), lines, document)
