"""Every JSON Schema: its title and its fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from docs.generate.markdown import code, plain, table
from eaglehub.resources import resource

if TYPE_CHECKING:
    from collections.abc import Iterator


def schemas() -> Iterator[str]:
    """Lines of the page."""
    yield "# Schemas"
    yield ""
    yield "JSON Schemas (2020-12) of everything that eaglehub reads and writes as data. `eaglehub schema NAME` prints"
    yield "one. Every report has a `kind` and a `schema_version`."
    for path in sorted(resource("schemas").glob("*.schema.json")):
        schema = json.loads(path.read_bytes())
        yield from ("", f"## {path.name.removesuffix('.schema.json')}", "", f"**{plain(schema['title'])}.**")
        if "description" in schema:
            yield plain(schema["description"])
        yield from ("", *table(("field", "type", "required", "what"), _fields(schema)))


def _fields(schema: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        if field is False:  # named to be refused
            continue
        field = {} if field is True else field
        yield (code(name), _type(field), "yes" if name in required else "", plain(field.get("description", "")))


def _type(field: dict[str, Any]) -> str:
    if "const" in field or "enum" in field:
        return ", ".join(code(json.dumps(value)) for value in field.get("enum", [field.get("const")]))
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    kinds: str | list[str] = field.get("type", "any")
    return " or ".join(kinds) if isinstance(kinds, list) else kinds
