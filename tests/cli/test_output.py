"""Where reports go: stdout, files, terminals; and chatter on stderr."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click
import pytest

from eaglehub import __version__
from eaglehub.cli.main import cli
from eaglehub.cli.options import ReportOptions, report_options
from eaglehub.cli.output import finish, progress, say, warn
from eaglehub.report.findings import Finding, Severity
from eaglehub.report.report import Report
from eaglehub.report.text import print_findings
from tests.cli.processes import run_in_terminal
from tests.cli_runner import run

if TYPE_CHECKING:
    from rich.console import Console

LONG = "layers.0." + "x" * 150
FINDINGS = (
    Finding("EH301", Severity.ERROR, "is not [bold]finite[/bold]", where=LONG, fix="train it again"),
    Finding("EH201", Severity.NOTE, "é \x1b[2J"),
)


class FakeReport(Report):
    kind: ClassVar[str] = "fake"

    @property
    def exit_code(self) -> int:
        return 1

    def data(self) -> dict[str, Any]:
        return {"findings": [finding.to_json() for finding in FINDINGS]}

    def render(self, console: Console) -> None:
        print_findings(console, FINDINGS)


class BrokenReport(FakeReport):
    def data(self) -> dict[str, Any]:
        return {"loss": float("nan")}


TEXT = f"error EH301 {LONG}: is not [bold]finite[/bold]\n  fix: train it again\nnote EH201 é \\x1b[2J\n"


@pytest.fixture(autouse=True)
def fake_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @report_options
    def fake(options: ReportOptions) -> None:
        say("converting")
        warn("slow \x07")
        with progress(10, "work") as advance:
            advance(10)
        finish(FakeReport(), options)

    @click.command()
    @report_options
    def broken(options: ReportOptions) -> None:
        finish(BrokenReport(), options)

    monkeypatch.setitem(cli.commands, "fake", fake)
    monkeypatch.setitem(cli.commands, "broken", broken)


def test_text_is_literal_and_unwrapped() -> None:
    result = run("fake")
    assert (result.exit_code, result.stdout) == (1, TEXT)


def test_chatter_is_on_stderr() -> None:
    assert run("fake").stderr == "converting\nwarning: slow \\x07\n"
    quiet = run("--quiet", "fake")
    assert (quiet.stdout, quiet.stderr) == (TEXT, "")


@pytest.mark.parametrize("args", [("--json",), ("--format", "json"), ("--json", "--format", "text")])
def test_json(args: tuple[str, ...]) -> None:
    result = run("fake", *args)
    assert result.exit_code == 1
    assert result.json() == {
        "schema_version": 1,
        "kind": "fake",
        "eaglehub": __version__,
        "findings": [
            {
                "code": "EH301",
                "severity": "error",
                "message": "is not [bold]finite[/bold]",
                "where": LONG,
                "fix": "train it again",
            },
            {"code": "EH201", "severity": "note", "message": "é \x1b[2J"},
        ],
    }
    assert result.stdout.isascii()


def test_files_besides_stdout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    text, document = tmp_path / "report.txt", tmp_path / "report.json"
    document.write_text("an older report")
    result = run("fake", "--output", f"json={document}", "--output", f"text={text}")
    assert (result.exit_code, result.stdout) == (1, TEXT)
    assert text.read_text(encoding="utf-8") == TEXT
    assert json.loads(document.read_text())["kind"] == "fake"
    assert sorted(tmp_path.iterdir()) == [document, text]


def test_files_get_the_usual_permissions(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    run("fake", "--output", f"json={tmp_path / 'report.json'}")
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("real.json")
    run("fake", "--output", f"json={tmp_path / 'link.json'}")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["kind"] == "fake"


def test_a_circle_of_links_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "circle.json").symlink_to("circle.json")
    assert run("fake", "--output", f"json={tmp_path / 'circle.json'}").exit_code == 1
    assert json.loads((tmp_path / "circle.json").read_text())["kind"] == "fake"


def test_a_report_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    document = tmp_path / "report.json"
    document.write_text("an older report")
    assert run("broken", "--output", f"json={document}").exit_code == 70
    assert document.read_text() == "an older report"
    assert list(tmp_path.iterdir()) == [document]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_is_written_to_not_replaced() -> None:
    result = run("fake", "--output", "json=/dev/full")
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.endswith("error: /dev/full: cannot write the report: No space left on device\n")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no /proc")
def test_a_folder_that_takes_no_file() -> None:
    result = run("--quiet", "fake", "--output", "json=/proc/report.json")
    assert result.exit_code == 4
    assert result.stderr.startswith("error: /proc/report.json: cannot write the report: ")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("report.json", "'report.json' is not FORMAT=FILE"),
        ("json=", "'json=' is not FORMAT=FILE"),
        ("xml=report.xml", "unknown format 'xml'; known: text, json"),
        ("json=missing/report.json", "the folder of 'missing/report.json' does not exist"),
        ("json=.", "'.' is a folder"),
    ],
)
def test_output_that_cannot_be(value: str, message: str) -> None:
    result = run("fake", "--output", value)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_colour_only_on_a_terminal() -> None:
    assert "\x1b[1m" in run_in_terminal("env")
    assert "\x1b[3" not in run_in_terminal("env", env={"NO_COLOR": "1"})
