"""A YAML document with the line of each of its keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import yaml

from eaglehub.checkpoint.files import read_small_file
from eaglehub.checkpoint.yamltext import load_yaml
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
        text = read_small_file(path, str(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnusableInput(
            f"is not UTF-8 text (byte {error.start})", where=str(path), fix="save it as UTF-8"
        ) from None
    try:
        root, value = load_yaml(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UnusableInput(f"it is no YAML: {error.problem}", where=f"{path.name}:{line}") from error
    except yaml.YAMLError as error:
        raise UnusableInput(f"it is no YAML: {error}", where=path.name) from error
    document = Document(path.name, value, {})
    lines: dict[KeyPath, int] = {}
    if root is not None:
        _walk(root, (), lines, document)
    return replace(document, lines=lines)


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
