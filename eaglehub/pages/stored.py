"""Reports that were stored as JSON, read back to be shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import read_json_object
from eaglehub.errors import UnusableInput
from eaglehub.pages.build import BUILDERS
from eaglehub.resources import resource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read_report(path: Path) -> Mapping[str, Any]:
    """A report that a command stored as JSON, and that there is a page for.

    Raises:
        UnusableInput: it is none, or not as its schema says.
    """
    from jsonschema import Draft202012Validator

    report = read_json_object(path)
    kind = report.get("kind")
    if not isinstance(kind, str) or kind not in BUILDERS:
        what = f"there is no page for a report of kind {kind!r}" if kind else "is not a report of eaglehub"
        raise UnusableInput(what, where=path.name, fix=f"there is one for {', '.join(BUILDERS)}")
    schema = json.loads(resource("schemas", f"report-{kind}.schema.json").read_bytes())
    if error := next(Draft202012Validator(schema).iter_errors(report), None):
        what = f"is not as eaglehub writes it: {error.json_path}: {error.message[:200]}"
        raise UnusableInput(what, where=path.name)
    return report
