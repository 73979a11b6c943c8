"""The format specs themselves: valid, bijective, and as they are described."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

import eaglehub.formats
from eaglehub.formats.spec import load_formats, writable_formats
from eaglehub.resources import resource
from tests.cli_runner import run
from tests.reports import validate

FILES = sorted(Path(eaglehub.formats.__path__[0]).glob("*.yaml"))
CANONICAL = [
    "fc.weight",
    "norm.weight",
    "lm_head.weight",
    "d2t",
    "layers.0.hidden_norm.weight",
    "layers.0.self_attn.q_proj.weight",
    "layers.0.mlp.down_proj.weight",
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_fits_the_schema(file: Path) -> None:
    schema = json.loads(resource("schemas", "format-spec.schema.json").read_bytes())
    document = yaml.safe_load(file.read_text())

    Draft202012Validator(schema).validate(document)

    assert document["id"] == file.stem


def test_renames_are_reversible() -> None:
    assert [rule for spec in load_formats().values() for rule in spec.renames if not rule.reversible] == []


@pytest.mark.parametrize("format_id", writable_formats())
@pytest.mark.parametrize("name", CANONICAL)
def test_names_go_there_and_back(format_id: str, name: str) -> None:
    spec = load_formats()[format_id]

    source = spec.source_name(name)

    assert source is not None
    assert spec.canonical_name(source) == name


def test_the_command_lists_every_format() -> None:
    report = validate(run("formats", "--json"))

    assert [entry["id"] for entry in report["formats"]] == [file.stem for file in FILES]


def test_one_format_is_described_in_full() -> None:
    result = run("formats", "specforge")

    assert "midlayer.{rest}" in result.stdout
    assert "norm_output" in result.stdout


def test_an_unknown_format_is_a_usage_error() -> None:
    result = run("formats", "nonsense")

    assert result.exit_code == 2
    assert "specforge" in result.stderr
