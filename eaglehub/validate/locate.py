"""Where in which file a finding is: the line of a config key, or the file that holds a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.report.located import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from eaglehub.report.findings import Finding
    from eaglehub.validate.judge import Judgement

_CONFIG = "config.json"


def places(judgement: Judgement) -> list[tuple[Finding, Place]]:
    """Each finding with its place."""
    lines = key_lines(judgement.config_text) if judgement.findings else {}
    return [(finding, _place(judgement, finding.where, lines)) for finding in judgement.findings]


def _place(judgement: Judgement, where: str, lines: Mapping[str, int]) -> Place:
    file, _, key = where.partition(": ")
    if file == _CONFIG or _line(where, lines):
        return Place(judgement.folder.shown(_CONFIG), _line(key or where, lines) or 1)
    file = judgement.tensor_files.get(where, where if where in judgement.files else _CONFIG)
    return Place(judgement.folder.shown(file), 1)


def _line(key: str, lines: Mapping[str, int]) -> int | None:
    """Line of the key: at that path, inside a nested layer config, or that of its nearest parent."""
    if key in lines:
        return lines[key]
    nested = next((line for path, line in lines.items() if path.endswith(f".{key}")), None)
    parent = key.rpartition(".")[0]
    return nested or (_line(parent, lines) if parent else None)


def key_lines(text: str) -> dict[str, int]:
    """Line, from 1 on, of every key of a JSON object, by dotted path; empty when the text is no JSON."""
    import yaml

    # JSON is a subset of YAML, and PyYAML's nodes know where they stand.
    try:
        root = yaml.compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return {}
    return dict(_key_lines(root, "")) if root is not None else {}


def _key_lines(node: object, prefix: str) -> Iterator[tuple[str, int]]:
    import yaml

    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        yield f"{prefix}{key.value}", key.start_mark.line + 1
        yield from _key_lines(value, f"{prefix}{key.value}.")
