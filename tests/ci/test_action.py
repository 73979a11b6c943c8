"""The action as a runner runs it: what it reports, and that nothing in its inputs is ever carried out."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.ci.runner import Runner
from tests.cli_runner import run
from tests.drafters import build, target_config
from tests.validate.cases import build as build_case
from tests.verify.conftest import Bench

HOSTILE = [
    "with two  spaces",
    "$(touch pwned)",
    "`touch pwned`",
    "${HOME}",
    "; touch pwned #",
    "' && touch pwned && '",
    '" | tee pwned "',
    "> pwned",
    "*",
    "--help",
    "-",
    "~",
    "\\n",
    "::error title=x::y",
    "${{ github.token }}",
    "[a](b)|<img src=x>",
]
BAD = {"base": "vllm-3", "config": {"auto_map": {"AutoConfig": "x|y.Z"}}}


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_findings(runner: Runner) -> None:
    build_case(BAD, runner.workspace / "drafter")

    done = runner.run({"paths": "drafter"})

    assert done.exit_code == 1
    assert done.outputs["exit-code"] == "1"
    assert done.commands == ["error"]
    line = next(line for line in done.stdout.splitlines() if line.startswith("::error"))
    assert line.startswith("::error file=drafter/config.json,line=")
    assert "| drafter | EH901 | error | config.json: auto\\_map |" in done.summary
    [result] = json.loads(Path(done.outputs["sarif"]).read_text())["runs"][0]["results"]
    assert result["ruleId"] == "EH901"
    assert ET.parse(done.outputs["junit"]).getroot().find("testsuite[@failures='1']") is not None
    assert json.loads(Path(done.outputs["json"]).read_text())["summary"]["error"] == 1


def test_nothing_hostile_is_carried_out(runner: Runner, tmp_path: Path) -> None:
    bad = build_case(BAD, tmp_path / "outside")
    for name in HOSTILE:
        shutil.copytree(bad, runner.workspace / name)
    before = {path for path in tmp_path.rglob("*") if runner.temp not in path.parents}

    done = runner.run({"paths": "\n".join([*HOSTILE, "../outside", "", " \t", "not there"])})

    assert done.exit_code == 3, done.stdout + done.stderr
    after = {path for path in tmp_path.rglob("*") if runner.temp not in path.parents}
    assert after == before
    report = json.loads(Path(done.outputs["json"]).read_text())
    assert [drafter["name"] for drafter in report["drafters"]] == [*HOSTILE, "outside", "not there"]
    assert {finding["code"] for each in report["drafters"][:-1] for finding in each["findings"]} == {"EH901"}
    assert set(done.commands) == {"error"}
    assert len(done.commands) == report["summary"]["error"]
    assert "<img" not in done.summary.replace("\\<img", "")


@pytest.mark.parametrize(
    "inputs",
    [
        {"validate-options": "--no-values\n--ignore=$(touch pwned)"},
        {"validate-options": "--nonsense"},
        {"target": "`touch pwned`"},
        {"paths": "\n \n"},
        {"paths": ""},
    ],
)
def test_what_cannot_run_says_so(inputs: dict[str, str], runner: Runner, tmp_path: Path) -> None:
    build("vllm-3", runner.workspace / "drafter")

    done = runner.run({"paths": "drafter"} | inputs)

    assert done.exit_code in (2, 3)
    assert "could not run" in done.summary or done.commands == ["error"]
    assert not list(tmp_path.rglob("pwned"))


def test_options_are_one_a_line(runner: Runner) -> None:
    build_case(BAD, runner.workspace / "drafter")

    done = runner.run({"paths": "drafter", "validate-options": "--no-values\n\n--ignore\nEH901\n"})

    assert done.exit_code == 0
    assert "1 drafter: nothing found." in done.summary
    assert done.commands == []


@pytest.mark.parametrize("room", [20, 250, 10_000])
def test_the_summary_keeps_to_its_size(room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner drops a summary of more than 1 MiB as a whole."""
    limit = 1 << 20
    summary = tmp_path / "summary.md"
    summary.write_bytes(b"x" * (limit - room))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    drafter = build_case(BAD, tmp_path / "drafter")

    assert run("validate", drafter, "--format", "github").exit_code == 1

    assert summary.stat().st_size <= limit
    assert summary.read_text().endswith("have it all.\n") is (room == 250)
    assert ("EH901" in summary.read_text()) is (room == 10_000)


@pytest.mark.slow
def test_verify_on_request(runner: Runner, tmp_path: Path) -> None:
    """Every drafter is run, the gravest exit code counts, and the names that vLLM's log repeats are only text."""
    names = ["::add-mask::a  drafter", "second"]
    for name in names:
        build("vllm-3.1", runner.workspace / name)

    done = runner.run(verification("useless", tmp_path) | {"paths": "\n".join(names)})

    assert (done.exit_code, done.outputs["exit-code"]) == (1, "1"), done.stdout + done.stderr
    assert set(done.commands) == {"notice"}
    reports = Path(done.outputs["reports"])
    verified = [json.loads((reports / f"verify-{number}.json").read_text()) for number in (1, 2)]
    assert [(report["verdict"], report["drafter"]["name"]) for report in verified] == [("fail", name) for name in names]
    assert {file.suffix for file in reports.glob("verify-2.*")} == {".json", ".xml", ".md", ".html"}
    assert not list(runner.workspace.rglob("eaglehub-verify.json"))
    assert done.summary.count("\n## ") == 2


@pytest.mark.slow
def test_a_page_too_many_is_left_out(runner: Runner, tmp_path: Path) -> None:
    build("vllm-3.1", runner.workspace / "drafter")
    runner.summary.write_bytes(b"x" * ((1 << 20) - 2000))

    done = runner.run(verification("good", tmp_path) | {"paths": "drafter"})

    assert done.exit_code == 0, done.stdout + done.stderr
    assert done.summary.endswith("verify-1.md does not fit into the summary; it is among the reports.\n")
    assert len(done.summary) <= 1 << 20


@pytest.mark.slow
def test_an_invalid_drafter_is_not_run(runner: Runner, tmp_path: Path) -> None:
    build_case(BAD, runner.workspace / "drafter")

    done = runner.run(verification("good", tmp_path) | {"paths": "drafter"})

    assert done.exit_code == 1
    assert not list(Path(done.outputs["reports"]).glob("verify-*"))


def verification(mode: str, folder: Path) -> dict[str, str]:
    """Inputs that ask for verification in a vLLM that behaves like this."""
    target_config("llama", folder / "target")
    interpreter = Bench(folder).interpreter(mode)
    options = f"--python={interpreter}\n--limit\n6"
    return {"target": str(folder / "target"), "verify": "true", "verify-options": options}


@pytest.mark.slow
def test_it_installs_its_own_checkout(runner: Runner) -> None:
    """Without an index: what the build and eaglehub need is lent by this environment."""
    build("vllm-3", runner.workspace / "drafter")
    lent = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}

    done = runner.run(
        {"paths": "drafter", "command": "", "python": sys.executable},
        lent | {"PYTHONPATH": sysconfig.get_path("purelib")},
    )

    assert done.exit_code == 0, done.stdout + done.stderr
    assert Path(done.outputs["command"]).is_relative_to(runner.temp)
