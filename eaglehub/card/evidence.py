"""The reports beside a drafter, and whether they are about these very bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import read_json_object
from eaglehub.convert import PROVENANCE_FILE
from eaglehub.errors import UnusableInput
from eaglehub.resources import resource
from eaglehub.verify.report import REPORT_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VERIFICATION_FILE = REPORT_FILE
EVALUATION_FILE = "eaglehub-evaluate.json"
REPORTS = (VERIFICATION_FILE, EVALUATION_FILE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A report beside the drafter.

    Attributes:
        report: the document; None unless it is sound and about these bytes.
        problem: why there is none, in words that follow the file's name.
    """

    report: Mapping[str, Any] | None
    problem: str = ""


def read_report(folder: Path, file: str, digest: str) -> Evidence:
    """One of `REPORTS`.

    Args:
        folder: the drafter's.
        file: the report's name.
        digest: of the drafter's config.json and weights, by `checkpoint.hashing.folder_digest`.
    """
    if not (folder / file).is_file():
        return Evidence(None, "is missing")
    try:
        report = read_json_object(folder / file)
        _check(report, f"report-{file.removeprefix('eaglehub-').removesuffix('.json')}", file)
    except UnusableInput as error:
        return Evidence(None, error.what)
    if report["drafter"]["digest"] != digest:
        return Evidence(None, "was made of other weights or another config.json")
    return Evidence(report)


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """`eaglehub.json`; None where there is none.

    Raises:
        UnusableInput: it is not as eaglehub writes it.
    """
    if not (folder / PROVENANCE_FILE).is_file():
        return None
    document = read_json_object(folder / PROVENANCE_FILE)
    _check(document, "provenance", PROVENANCE_FILE)
    return document


def _check(document: dict[str, Any], schema: str, file: str) -> None:
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(json.loads(resource("schemas", f"{schema}.schema.json").read_bytes()))
    if fault := next(iter(validator.iter_errors(document)), None):
        place = ".".join(map(str, fault.absolute_path)) or "the document"
        what = f"is not as this version of eaglehub writes it ({place})"
        raise UnusableInput(what, where=file, fix="make it again, or remove it")
