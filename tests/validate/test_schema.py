"""The small schema checker says the same as the library."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from eaglehub.resources import resource
from eaglehub.validate.schema import _KEYWORDS, SILENT, violations
from tests.drafters import BUILDERS

SCHEMAS = {
    name: json.loads(resource("schemas", f"{name}.schema.json").read_bytes())
    for name in ("native-config", "speculators-config")
}
CONFIGS = [builder.args[0]().config for builder in BUILDERS.values()]  # type: ignore[attr-defined]
KEYS = sorted({key for schema in SCHEMAS.values() for key in schema["properties"]})
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.sampled_from(["", "silu"])
JSON: Any = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)


def _subschemas(schema: Any) -> list[dict[str, Any]]:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else []
    return ([schema] if isinstance(schema, dict) else []) + [found for part in inner for found in _subschemas(part)]


def _agree(config: Any, name: str) -> None:
    theirs = Draft202012Validator(SCHEMAS[name]).is_valid(config)
    assert (not any(violations(config, name))) == theirs, config


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_keyword_is_known(name: str) -> None:
    names = {key for schema in SCHEMAS.values() for part in _subschemas(schema) for key in part}
    keywords = names - set(KEYS) - {key for part in _subschemas(SCHEMAS[name]) for key in part.get("properties", {})}
    properties = {
        key for schema in SCHEMAS.values() for part in _subschemas(schema) for key in part.get("properties", {})
    }
    assert keywords - properties <= _KEYWORDS.keys() | SILENT | {"additionalProperties", "$defs", "$ref"}


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_real_configs(config: Any, name: str) -> None:
    _agree(config, name)


@pytest.mark.parametrize("name", SCHEMAS)
@given(changes=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4), base=st.sampled_from(CONFIGS))
@settings(max_examples=150, deadline=None, database=None, derandomize=True)
def test_changed_configs(changes: dict[str, Any], base: dict[str, Any], name: str) -> None:
    _agree(base | changes, name)
