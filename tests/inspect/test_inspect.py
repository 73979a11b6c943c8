"""`eaglehub inspect` tells what a drafter is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run
from tests.drafters import BROKEN, BUILDERS, NEEDS_TORCH, build
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

READABLE = [name for name in BUILDERS if name not in (*BROKEN, *NEEDS_TORCH)]


@pytest.mark.parametrize("name", READABLE)
def test_tells_what_it_is(name: str, tmp_path: Path) -> None:
    fixture = build(name, tmp_path / "drafter")
    assert fixture.expected is not None

    report = validate(run("inspect", fixture.path, "--json", *fixture.expected.options))

    assert report["format"] == fixture.expected.producer
    facts = fixture.expected.config
    drafter = report["drafter"]
    same = ("hidden_size", "target_hidden_size", "vocab_size", "draft_vocab_size", "num_hidden_layers")
    assert {key: drafter[key] for key in same if key in facts} == {key: facts[key] for key in same if key in facts}
    assert drafter["generation"] == ("3.1" if facts.get("fc_norm") or facts.get("norm_output") else "3")


def test_one_screen_shows_both_conventions(tmp_path: Path) -> None:
    fixture = build("specforge", tmp_path / "drafter")

    result = run("inspect", fixture.path)

    assert result.exit_code == 0
    assert "IN [2, 18, 34]" in result.stdout
    assert "OUT [1, 17, 33]" in result.stdout
    assert len(result.stdout.splitlines()) < 24


@pytest.mark.parametrize("name", ["no-fc", "zero-d2t"])
def test_a_broken_drafter_is_shown_with_its_findings(name: str, tmp_path: Path) -> None:
    fixture = BROKEN[name][0](tmp_path / "drafter")

    result = run("inspect", fixture.path, "--json")

    report = validate(result)
    assert result.exit_code == 0
    assert report["drafter"] is None
    assert [finding for finding in report["findings"] if finding["severity"] == "error"]
