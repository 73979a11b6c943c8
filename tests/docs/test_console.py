"""What the README and the pages show in console blocks is what is printed."""

from __future__ import annotations

import runpy
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run
from tests.docs.console import PAGES, ROOT, build_drafters, check, commands

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Its drafter is a trained one, see below.
TUTORIAL = ROOT / "docs" / "tutorial.md"
WITH_BLOCKS = [page for page in PAGES if commands(page) and page != TUTORIAL]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.stem)
def test_console_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runpy.run_path(str(ROOT / "examples" / "demo" / "build_drafter.py"))["main"](tmp_path / "drafter")
    build_drafters(page, tmp_path)
    monkeypatch.chdir(tmp_path)

    for command in commands(page):
        check(command)


@pytest.mark.slow
def test_tutorial(tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what other tests train too, as `examples/demo/train.py` trains and writes it."""
    pytest.importorskip("torch", reason="torch is not installed")
    trained = tiny("llama")
    for name in ("target", "prompts.jsonl"):
        (tmp_path / name).symlink_to(trained / name)
    monkeypatch.chdir(tmp_path)
    assert run("convert", trained / "drafter", "drafter", "--to", "specforge").exit_code == 0

    for command in commands(TUTORIAL):
        check(command)
