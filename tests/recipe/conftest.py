"""A folder with a drafter that can be converted, and recipes written into it."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import Result, run
from tests.drafters import build

if TYPE_CHECKING:
    from pathlib import Path

STEPS = """\
source: drafter
steps:
- convert: {}
- validate: {}
"""


@dataclass(frozen=True)
class Kitchen:
    """Where everything is."""

    folder: Path

    @property
    def recipe(self) -> Path:
        return self.folder / "recipe.yaml"

    def write(self, text: str) -> None:
        self.recipe.write_text(dedent(text), encoding="utf-8")

    def run(self, *args: str | Path) -> Result:
        return run("run", self.recipe, *args)

    def statuses(self, *args: str) -> dict[str, list[str]]:
        """What became of each step of each chain."""
        chains = self.run("--json", *args).json()["chains"]
        return {chain["name"]: [step["status"] for step in chain["steps"]] for chain in chains}


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    build("specforge", tmp_path / "drafter")
    found = Kitchen(tmp_path)
    found.write(STEPS)
    return found
