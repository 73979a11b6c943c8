"""A drafter and a target that need not work, and a fake vLLM that decides what they do."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli_runner import Result, run
from tests.drafters import build, target_config

FAKE = Path(__file__).with_name("fake_vllm.py")


@dataclass(frozen=True)
class Bench:
    """Where everything is, and `verify` with a fake vLLM of some mode."""

    folder: Path

    @property
    def drafter(self) -> Path:
        return self.folder / "drafter"

    @property
    def target(self) -> Path:
        return self.folder / "target"

    def interpreter(self, mode: str) -> Path:
        """An executable that stands for a Python with vLLM."""
        path = self.folder / f"python-{mode}"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" {mode} "$@"\n')
        path.chmod(0o755)
        return path

    def verify(self, mode: str, *args: str | Path) -> Result:
        """Run the command on six built-in prompts."""
        fixed = ("--target", self.target, "--python", self.interpreter(mode), "--limit", "6")
        return run("verify", self.drafter, *fixed, *args)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    build("vllm-3.1", tmp_path / "drafter")
    target_config("llama", tmp_path / "target")
    return Bench(tmp_path)
