"""Runs the console blocks of a page, and compares what they show with what is printed.

Each `$ eaglehub ...` is run; its exit code is N where `# exits with N` stands behind it, else 0. `...` stands for any
lines, or for the rest of one. `<!-- figures vary -->` above a block lets its numbers be others. `<!-- drafter NAME -->`
anywhere on a page asks for that fixture of `tests.drafters`, in a folder of the same name.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.cli_runner import run
from tests.drafters import build

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(r"^(<!-- figures vary -->\n)?```console\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
_DRAFTER = re.compile(r"<!-- drafter ([\w.-]+) -->")
_NUMBER = re.compile(r"\d+(\.\d+)?")


class Command(NamedTuple):
    """A command and the lines shown below it."""

    line: str
    shown: list[str]
    figures_vary: bool


def commands(page: Path) -> list[Command]:
    """All of a page, in order."""
    return [
        command for vary, block in _BLOCK.findall(page.read_text("utf-8")) for command in _commands(block, bool(vary))
    ]


def _commands(block: str, figures_vary: bool) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, *shown = part.splitlines()
        yield Command(line, shown, figures_vary)


def build_drafters(page: Path, folder: Path) -> None:
    """Write the fixtures that the page asks for."""
    for name in _DRAFTER.findall(page.read_text("utf-8")):
        build(name, folder / name)


def check(command: Command) -> None:
    """Run a command in the current folder, and hold it to what the page says."""
    line, _, comment = command.line.partition("  #")
    program, *arguments = shlex.split(line)
    assert program == "eaglehub"
    result = run(*arguments)
    expected = re.search(r"exits with (\d+)", comment)
    assert result.exit_code == int(expected[1] if expected else 0), command.line + result.stderr
    printed = result.stdout.splitlines()
    shown = command.shown
    if command.figures_vary:
        shown, printed = ([_without_figures(text) for text in lines] for lines in (shown, printed))
    assert _matches(shown, printed), f"{command.line}\n{result.stdout}"


def _without_figures(line: str) -> str:
    return " ".join(_NUMBER.sub("0", line).split())


def _matches(shown: list[str], printed: list[str]) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"[ ]*\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None
