"""The frame: help, exit codes, streams and locales."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from eaglehub import __version__
from eaglehub.cli.main import COMMANDS, cli
from eaglehub.errors import EaglehubError, EnvironmentProblem, HubProblem, UnusableInput, UsageProblem
from tests.cli.processes import run_process
from tests.cli_runner import run

HEAVY = ("torch", "numpy", "rich", "jsonschema", "huggingface_hub", "yaml", "jinja2", "importlib.metadata")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch):
    """Make `eaglehub fake` raise what the test wants."""

    def install(error: BaseException) -> None:
        @click.command()
        def command() -> None:
            raise error

        monkeypatch.setitem(cli.commands, "fake", command)

    return install


def test_help_lists_every_command() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert result.stderr == ""
    listed = [line.split()[0] for line in result.stdout.partition("Commands:\n")[2].splitlines() if line]
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = run(name, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: eaglehub {name} ")


def test_version() -> None:
    assert run("--version").stdout == f"eaglehub {__version__}\n"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_nothing_heavy_is_imported(option: str) -> None:
    code = f"""if True:
        import sys
        from eaglehub.cli.main import main
        main([{option!r}])
        commands = {{module for module in sys.modules if module.startswith("eaglehub.cli.")}} - {{"eaglehub.cli.main"}}
        print(sorted(commands | set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(("typed", "hint"), [("dif", "Did you mean 'diff'?"), ("zzz", "The commands are convert,")])
def test_unknown_command(typed: str, hint: str) -> None:
    result = run(typed)
    assert result.exit_code == 2
    assert f"No such command '{typed}'. {hint}" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("args", [(), ("--nonsense",), ("diff",), ("diff", "--format", "xml", "a", "b")])
def test_wrong_usage(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("error", "exit_code", "line"),
    [
        (UsageProblem("a contradicts b", fix="drop b"), 2, "error: a contradicts b (drop b)"),
        (UnusableInput("no weights", where="drafter"), 3, "error: drafter: no weights"),
        (EnvironmentProblem("no\n torch"), 4, "error: no torch"),
        (HubProblem("503"), 5, "error: 503"),
        (EaglehubError("odd"), 70, "error: odd"),
        (UnusableInput("name \x1b[2J"), 3, r"error: name \x1b[2J"),
        (OSError(errno.ENOSPC, "No space left on device", "out"), 4, "error: out: No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied"), 4, "error: standard output: Permission denied"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "aaa"), 3, "error: aaa: File name too long"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (
            ZeroDivisionError("1\n/ 0"),
            70,
            "error: this is a bug in eaglehub: ZeroDivisionError: 1 / 0 (run it as `eaglehub --debug ...` and report"
            " the traceback)",
        ),
    ],
    ids=repr,
)
def test_exceptions_become_exit_codes(fake, error: BaseException, exit_code: int, line: str) -> None:
    fake(error)
    result = run("fake")
    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, "", f"{line}\n")


def test_debug_shows_the_traceback(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(ZeroDivisionError())
    assert "Traceback (most recent call last)" in run("--debug", "fake").stderr
    monkeypatch.setenv("EAGLEHUB_DEBUG", "1")
    assert "Traceback (most recent call last)" in run("fake").stderr
    monkeypatch.delenv("EAGLEHUB_DEBUG")
    assert "Traceback" not in run("fake").stderr


@pytest.mark.parametrize("args", [("--help",), ("schema", "report-diff"), ("env",)])
def test_a_reader_that_went_away_is_no_error(args: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run_process(*args, stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("args", [("--help",), ("schema", "report-diff"), ("env", "--json")])
def test_a_full_disk_behind_stdout(args: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = run_process(*args, stdout=full)
    assert (done.returncode, done.stderr) == (4, "error: standard output: No space left on device\n")


def test_any_locale_will_do(tmp_path: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run_process("diff", str(tmp_path / "brouillon-é-草"), "b", env=ascii_only)
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert run_process("env", env=ascii_only).returncode == 0


@pytest.mark.parametrize("args", [("--help",), ("diff", "--help")])
def test_narrow_terminal(args: tuple[str, ...]) -> None:
    assert run_process(*args, env={"COLUMNS": "20"}).returncode == 0


def test_shell_completion() -> None:
    typed = {"_EAGLEHUB_COMPLETE": "bash_complete", "COMP_WORDS": "eaglehub dif", "COMP_CWORD": "1"}
    assert run_process(env=typed).stdout == "plain,diff\n"
    assert "complete" in run_process(env={"_EAGLEHUB_COMPLETE": "zsh_source"}).stdout
