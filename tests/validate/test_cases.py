"""Every bad case raises exactly its codes, every good one nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import eaglehub
from eaglehub.validate import CATALOGUE
from tests.drafters import NEEDS_TORCH
from tests.reports import validate
from tests.validate.cases import load, run_case

BAD, GOOD = load("bad"), load("good")
# Every publicly reported trap that can be seen in a drafter's config, headers or values, or with its target's.
_TRAPS = {
    "A": [1, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22],
    "B": [1, 2, 3, 4, 5, 6, 7, 8, 9, 14],
    "C": [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26],
    "D": [1, 2, 3, 5, 7, 8, 9, 10, 13],
    "E": [1, 3, 4, 5, 6, 7, 8, 9, 12],
    "F-": [1, 6, 9],
    "H": [2, 4],
    "I": [3],
    "K": [7],
    "L": [2, 7, 8, 9, 10, 11],
    "M": [1, 3],
}
TRAPS = {f"{section}{number}" for section, numbers in _TRAPS.items() for number in numbers}


def _codes(result: Any) -> set[str]:
    report = result.json()
    if report["kind"] != "validate":
        return {finding["code"] for finding in report["findings"]}
    return {finding["code"] for finding in validate(result)["drafters"][0]["findings"]}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_case_raises_exactly_its_codes(name: str, tmp_path: Path) -> None:
    case = BAD[name]
    if case["base"] in NEEDS_TORCH or "pytorch_model.bin" in case.get("files", {}):
        pytest.importorskip("torch")
    result = run_case(case, tmp_path, "--json")
    assert _codes(result) == set(case["raises"]), (
        result.stderr or result.json().get("drafters", result.stdout)[0]["findings"]
    )
    assert result.exit_code == case.get("exit", 1)
    assert result.stderr == ""


@pytest.mark.parametrize("name", GOOD)
def test_a_good_case_raises_nothing(name: str, tmp_path: Path) -> None:
    result = run_case(GOOD[name], tmp_path, "--json")
    assert _codes(result) == set(), result.json()["drafters"][0]["findings"]
    assert result.exit_code == 0


def test_every_rule_has_a_case_that_raises_nothing_else() -> None:
    """So that taking any one rule away makes a case fail."""
    assert {case["raises"][0] for case in BAD.values() if len(case["raises"]) == 1} == set(CATALOGUE)


@pytest.mark.parametrize("name", BAD)
def test_a_case_is_named_after_what_it_raises(name: str) -> None:
    assert name[:5] in BAD[name]["raises"]


def test_every_trap_has_a_case() -> None:
    shown = {trap for case in [*BAD.values(), *GOOD.values()] for trap in case.get("traps", ())}
    assert shown == TRAPS


def test_every_code_in_the_sources_is_in_the_catalogue() -> None:
    [package] = eaglehub.__path__
    emitted = {
        code for file in Path(package).rglob("*.py") for code in re.findall(r"\bEH\d{3}\b", file.read_text("utf-8"))
    }
    assert emitted <= set(CATALOGUE)
