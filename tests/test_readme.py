"""The README's console blocks are run, and what they show is what is printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli_runner import run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md"]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```console\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Each `$ command` with the lines shown below it."""
    shown: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            shown.append((line[2:], []))
        else:
            shown[-1][1].append(line)
    return shown


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the shown lines are the printed ones; `...` stands for any lines, or for the rest of one."""
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"[ ]*\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = ROOT / "examples" / "demo" / "build_drafter.py"
    subprocess.run([sys.executable, builder, tmp_path / "drafter"], check=True)
    monkeypatch.chdir(tmp_path)

    for block in blocks(page):
        for command, shown in commands(block):
            line, _, comment = command.partition("  #")
            program, *arguments = shlex.split(line)
            assert program == "eaglehub"
            result = run(*arguments)
            expected = re.search(r"exits with (\d+)", comment)
            assert result.exit_code == int(expected[1] if expected else 0), command + result.stderr
            assert matches(shown, result.stdout.splitlines()), f"{command}\n{result.stdout}"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), target
