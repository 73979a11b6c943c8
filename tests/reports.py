"""Checks a command's JSON report against the schema of its kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

from eaglehub.resources import resource

if TYPE_CHECKING:
    from tests.cli_runner import Result


def validate(result: Result) -> dict[str, Any]:
    """Return the report on standard output, valid by `schemas/report-{kind}.schema.json`."""
    report: dict[str, Any] = result.json()
    schema = json.loads(resource("schemas", f"report-{report['kind']}.schema.json").read_bytes())
    Draft202012Validator(schema).validate(report)
    return report
