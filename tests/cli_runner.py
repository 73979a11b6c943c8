"""Runs the command line inside the test's own process."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Result:
    """What a run left behind."""

    exit_code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """Standard output as JSON."""
        assert self.stdout, self.stderr
        return json.loads(self.stdout)


def run(*args: str | Path) -> Result:
    """Run `eaglehub ARGS`; neither stream is a terminal."""
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(stdout), redirect_stderr(stderr):
        exit_code = main([str(arg) for arg in args])
    return Result(exit_code, _text(stdout), _text(stderr))


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
