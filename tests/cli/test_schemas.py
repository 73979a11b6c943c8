"""The JSON Schemas, and the reports that must satisfy them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from eaglehub.resources import resource
from tests.cli_runner import run

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMAS = sorted(resource("schemas").glob("*.schema.json"))


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            yield from _subschemas(item)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schema_is_valid(path) -> None:
    schema = json.loads(path.read_bytes())
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]


@pytest.mark.parametrize("path", [path for path in SCHEMAS if path.name.startswith("report-")], ids=lambda p: p.name)
def test_reports_are_closed(path) -> None:
    schema = json.loads(path.read_bytes())
    kind = path.name.removeprefix("report-").removesuffix(".schema.json")
    assert schema["properties"]["kind"] == {"const": kind}
    for part in _subschemas(schema):
        if "properties" in part:
            assert part.get("additionalProperties") is False
            assert set(part.get("required", ())) <= set(part["properties"])


def test_list() -> None:
    lines = run("schema").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [path.name.removesuffix(".schema.json") for path in SCHEMAS]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_print_exact_bytes(path) -> None:
    result = run("schema", path.name.removesuffix(".schema.json"))
    assert result.exit_code == 0
    assert result.stdout.encode() == path.read_bytes()


def test_unknown_name() -> None:
    result = run("schema", "report-nothing")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no schema is called 'report-nothing' (known: " in result.stderr
    assert "report-env" in result.stderr
