"""The pages that `eaglehub verify` writes beside its other reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli_runner import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.verify.conftest import Bench


def test_they_are_those_of_the_stored_report(bench: Bench, tmp_path: Path) -> None:
    pages = {"html": tmp_path / "page.html", "markdown": tmp_path / "page.md"}
    outputs = [f"--output={name}={path}" for name, path in pages.items()]
    assert bench.verify("lossy", "--fast", *outputs).exit_code == 1
    stored = bench.drafter / "eaglehub-verify.json"
    for name, path in pages.items():
        assert path.read_text() == run("report", stored, "--format", name).stdout
