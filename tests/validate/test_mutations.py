"""The validator itself under mutation: with any one rule or check taken away, a case comes out differently."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from eaglehub.convert import convert
from eaglehub.validate import CATALOGUE
from eaglehub.validate.rules import CHECKS
from tests.drafters import NEEDS_TORCH
from tests.validate.cases import load, run_case

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from eaglehub.report.findings import Finding
    from eaglehub.validate.rule import Check

BAD = load("bad")
JUDGE = sys.modules["eaglehub.validate.judge"]


def _outcome(case: dict[str, Any], folder: Path) -> tuple[list[str], int]:
    result = run_case(case, folder, "--json")
    report = result.json()
    findings = report["findings"] if "findings" in report else report["drafters"][0]["findings"]
    return sorted({finding["code"] for finding in findings}), result.exit_code


def _wanted(case: dict[str, Any]) -> tuple[list[str], int]:
    return sorted(case["raises"]), case.get("exit", 1)


@pytest.mark.slow
@pytest.mark.parametrize("code", CATALOGUE)
def test_a_rule_that_is_taken_away_is_missed(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in BAD.values() if case["raises"] == [code])
    if case["base"] in NEEDS_TORCH or "pytorch_model.bin" in case.get("files", {}):
        pytest.importorskip("torch")
    whole = JUDGE._unique

    def without(findings: Iterable[Finding]) -> list[Finding]:
        return whole(finding for finding in findings if finding.code != code)

    monkeypatch.setattr(JUDGE, "_unique", without)
    monkeypatch.setattr(convert, "inexpressible", lambda *_: [])
    assert _outcome(case, tmp_path) != _wanted(case)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.function.__module__}.{check.function.__name__}")
def test_a_check_that_is_taken_away_is_missed(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(JUDGE, "CHECKS", tuple(other for other in CHECKS if other is not check))
    assert any(_outcome(case, tmp_path / name) != _wanted(case) for name, case in BAD.items())
