"""The part of JSON Schema that the config schemas use, checked without importing a library for the whole of it.

That import alone would take longer than everything else `validate --no-values` does; a test holds this to the library.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from eaglehub.resources import resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: not isinstance(value, bool) and (isinstance(value, int) or _is_whole(value)),
}


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


# Keyword to what holds for a good value, and how a bad one is told.
_KEYWORDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "enum": (lambda value, wanted: value in wanted, "is {value}, not one of {wanted}"),
    "const": (lambda value, wanted: value == wanted and type(value) is type(wanted), "is {value}, not {wanted}"),
    "minimum": (lambda value, wanted: not _TYPES["number"](value) or value >= wanted, "is {value}, below {wanted}"),
    "exclusiveMinimum": (
        lambda value, wanted: not _TYPES["number"](value) or value > wanted,
        "is {value}, not above {wanted}",
    ),
    "minItems": (lambda value, wanted: not isinstance(value, list) or len(value) >= wanted, "is empty"),
    "minLength": (lambda value, wanted: not isinstance(value, str) or len(value) >= wanted, "is empty"),
    "uniqueItems": (
        lambda value, wanted: not wanted or not isinstance(value, list) or not _repeats(value),
        "{value} has repeated items",
    ),
    "not": (lambda value, unwanted: any(_violations(value, unwanted, "")), "is {value}, which is not allowed"),
}
# Statements about the schema itself, and what `_violations` handles.
SILENT = frozenset({"$schema", "$id", "title", "description", "type", "properties", "required", "items"})
_SHOWN = 60


def _repeats(items: list[Any]) -> bool:
    seen = [json.dumps(item, sort_keys=True) for item in items]
    return len(set(seen)) != len(seen)


@cache
def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(resource("schemas", f"{name}.schema.json").read_bytes())
    return schema


def violations(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Where `value` breaks the schema of that name: dotted path (empty for the top) and what is wrong there."""
    return _violations(value, _schema(name), "")


def _violations(value: Any, schema: Any, path: str) -> Iterator[tuple[str, str]]:
    if schema is True:
        return
    if schema is False:
        yield path, "is not allowed"
        return
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        yield path, f"is {_shown(value)}, not {' or '.join(kinds)}"
        return
    for keyword, wanted in schema.items():
        if keyword in SILENT or keyword == "additionalProperties":
            continue
        holds, message = _KEYWORDS[keyword]
        if not holds(value, wanted):
            yield path, message.format(value=_shown(value), wanted=_shown(wanted))
    yield from _inside(value, schema, path)


def _inside(value: Any, schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key in schema.get("required", ()):
            if key not in value:
                yield _join(path, key), "is missing"
        for key, inner in schema.get("properties", {}).items():
            if key in value:
                yield from _violations(value[key], inner, _join(path, key))
    if isinstance(value, list) and "items" in schema:
        for item in value:
            if broken := next(_violations(item, schema["items"], path), None):
                yield path, f"has an item that {broken[1]}"
                return


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
