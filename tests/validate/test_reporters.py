"""Lines, SARIF, JUnit and GitHub: where each finding is, and what was not checked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from eaglehub.validate import CATALOGUE
from eaglehub.validate.locate import key_lines
from tests.cli_runner import run
from tests.validate.cases import build

if TYPE_CHECKING:
    from pathlib import Path

CASE = {
    "base": "vllm-3",
    "config": {
        "auto_map": {"AutoConfig": "x|y.Z"},
        "_name_or_path": "/data/run",
        "eagle_config.eagle_aux_hidden_state_layer_ids": [3, 4, 5],
    },
    "tensors": {"lm_head.weight": {"set": [-1, float("nan")]}},
    "files": {"code, a: b.py": "pass"},
}


@pytest.fixture
def drafter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    folder = build(CASE, tmp_path / "models" / "drafter")
    monkeypatch.chdir(tmp_path)
    return folder


def line_of(drafter: Path, key: str) -> int:
    lines = (drafter / "config.json").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if f'"{key}":' in line)


def test_sarif(drafter: Path) -> None:
    result = run("validate", "models/drafter", "--format", "sarif")
    assert result.exit_code == 1
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    [sarif] = log["runs"]
    assert [rule["id"] for rule in sarif["tool"]["driver"]["rules"]] == list(CATALOGUE)
    found = {entry["ruleId"]: entry for entry in sarif["results"]}
    assert list(found) == ["EH501", "EH708", "EH901", "EH903", "EH905"]
    for code, entry in found.items():
        assert sarif["tool"]["driver"]["rules"][entry["ruleIndex"]]["id"] == code
        assert len(entry["partialFingerprints"]["eaglehub/v1"]) == 64
    places = {code: entry["locations"][0]["physicalLocation"] for code, entry in found.items()}
    assert places["EH901"]["artifactLocation"]["uri"] == "models/drafter/config.json"
    assert places["EH901"]["region"]["startLine"] == line_of(drafter, "auto_map") > 1
    nested = (drafter / "config.json").read_text().splitlines()[places["EH708"]["region"]["startLine"] - 1]
    assert nested.startswith('    "eagle_aux_hidden_state_layer_ids"')
    assert places["EH501"]["artifactLocation"]["uri"] == "models/drafter/model.safetensors"
    assert places["EH905"]["artifactLocation"]["uri"] == "models/drafter/code%2C%20a%3A%20b.py"
    assert {entry["level"] for entry in found.values()} == {"error", "warning"}


def test_fingerprints_survive_a_change_of_lines(drafter: Path) -> None:
    def fingerprints() -> dict[str, str]:
        [sarif] = json.loads(run("validate", "models/drafter", "--format", "sarif").stdout)["runs"]
        return {entry["ruleId"]: entry["partialFingerprints"]["eaglehub/v1"] for entry in sarif["results"]}

    before = fingerprints()
    config = drafter / "config.json"
    config.write_text("\n\n\n" + config.read_text())
    assert fingerprints() == before


def test_no_machine_path_is_told(drafter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for format_name in ("json", "lines", "sarif", "junit", "github"):
        assert str(tmp_path) not in run("validate", drafter, "--format", format_name).stdout


def test_lines(drafter: Path) -> None:
    lines = run("validate", "models/drafter", "--format", "lines").stdout.splitlines()
    assert [line.split(" (fix")[0] for line in lines if "EH905" in line] == [
        "models/drafter/code, a: b.py:1: error EH905 code, a: b.py is code"
    ]
    assert len(lines) == 5
    assert lines[2].startswith(f"models/drafter/config.json:{line_of(drafter, 'auto_map')}: error EH901 auto_map names")
    assert lines[2].endswith("(fix: remove auto_map; eaglehub convert does)")


def test_junit(drafter: Path) -> None:
    root = ET.fromstring(run("validate", "models/drafter", "--format", "junit", "--no-values").stdout)
    [suite] = root
    cases = {case.get("name", "")[:5]: case for case in suite}
    assert list(cases) == list(CATALOGUE)
    failed = {code for code, case in cases.items() if case.find("failure") is not None}
    assert failed == {"EH708", "EH901", "EH905"}
    assert (suite.get("tests"), suite.get("failures")) == (str(len(CATALOGUE)), "3")
    skipped = cases["EH501"].find("skipped")
    assert skipped is not None
    assert "--no-values" in skipped.get("message", "")
    assert "warning: " in (cases["EH903"].findtext("system-out") or "")
    assert len(cases["EH301"]) == 0


def test_github(drafter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    lines = run("validate", "models/drafter", "--format", "github").stdout.splitlines()
    line = line_of(drafter, "auto_map")
    assert lines[2].startswith(
        f"::error file=models/drafter/config.json,line={line},title=EH901 config.json%3A auto_map::auto_map names code"
    )
    assert lines[4].startswith("::error file=models/drafter/code%2C a%3A b.py,line=1,")
    assert [line.split()[0] for line in lines] == ["::error", "::error", "::error", "::warning", "::error"]
    table = summary.read_text()
    assert table.startswith("### eaglehub validate\n")
    assert table.count("\n| models/drafter | EH") == 5


def test_github_summary_of_a_clean_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert run("validate", build({"base": "vllm-3"}, tmp_path / "d"), "--format", "github").stdout == ""
    assert "1 drafter: nothing found." in summary.read_text()


def test_several_outputs(drafter: Path, tmp_path: Path) -> None:
    run("validate", "models/drafter", "--output", "sarif=a.sarif", "--output", "junit=b.xml", "--output", "json=c.json")
    assert json.loads((tmp_path / "a.sarif").read_text())["version"] == "2.1.0"
    assert ET.fromstring((tmp_path / "b.xml").read_text()).tag == "testsuites"
    assert json.loads((tmp_path / "c.json").read_text())["kind"] == "validate"


@pytest.mark.parametrize("command", [("inspect",), ("env",)])
def test_other_reports_have_no_places(command: tuple[str, ...], drafter: Path) -> None:
    paths = [drafter] if command == ("inspect",) else []
    assert run(*command, *paths, "--format", "sarif").exit_code == 2


def test_lines_of_keys() -> None:
    text = '{\n "a": 1,\n\t"b": {"c": [1,\n2],\n "d\\u00e9": null\n}}'
    assert key_lines(text) == {"a": 2, "b": 3, "b.c": 3, "b.d\u00e9": 5}
    assert key_lines("{") == {}
    assert key_lines("") == {}
