"""`eaglehub evaluate` on drafters of random weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eaglehub.drafter.target import read_target
from eaglehub.features import Source
from eaglehub.prompts import load_suite
from eaglehub.scoring.suites import build_suites
from tests.cli_runner import run
from tests.models.tiny_target import fitting, write_drafter, write_prompts, write_target
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

# All suites but the long one.
SHORT = (
    "--suite",
    "plain",
    "--suite",
    "no_bos",
    "--suite",
    "no_template",
    "--suite",
    "neither",
    "--suite",
    "odd_system",
)
SIZES = ("--max-tokens", "8", "--limit", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluate")
    write_target(folder / "target")
    write_drafter(folder / "one", fitting())
    write_drafter(folder / "other", fitting("qwen3", aux_layer_ids=(1, 2, 4)))
    write_prompts(folder / "prompts.jsonl")
    return folder


def test_two_drafters_are_compared_suite_by_suite(folder: Path, tmp_path: Path) -> None:
    result = run(
        "evaluate", folder / "one", "--target", folder / "target", "--compare", folder / "other", *SIZES,
        "--prompts", folder / "prompts.jsonl", *SHORT, "--output", f"markdown={tmp_path / 'report.md'}", "--json",
    )  # fmt: skip

    report = validate(result)
    # This target has no begin-of-sequence token, so two of the conditions are those with it.
    assert list(report["drafter"]["suites"]) == ["plain", "no_template", "odd_system"]
    assert report["drafter"]["suites"].keys() == report["compare"]["suites"].keys() == report["ratio"].keys()
    plain = report["drafter"]["suites"]["plain"]
    assert len(plain["per_position_acceptance_rates"]) == 5
    assert all(len(values) == 8 for values in plain["drift"].values())
    page = (tmp_path / "report.md").read_text()
    assert "one and other on target, without a server" in page
    assert f"| one: attention entropy | {plain['drift']['attention_entropy'][0]:.3f} |" in page


def test_suites_by_default_are_all(folder: Path) -> None:
    suites = build_suites(
        (), load_suite("chat")[:1], load_suite("long")[:1], Source(target=read_target(folder / "target")).tokenizer()
    )

    assert list(suites) == ["plain", "no_template", "odd_system", "long"]
    assert len(suites["long"][0].prompt) > 5 * len(suites["plain"][0].prompt)


def test_it_prints_one_line_a_suite(folder: Path) -> None:
    result = run("evaluate", folder / "one", "--target", folder / "target", *SIZES, "--suite", "plain")

    assert result.exit_code == 0, result.stderr
    assert sum(line.strip().startswith("plain") for line in result.stdout.splitlines()) == 1
    assert "state_rms" in result.stdout


def test_charts_are_drawn(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run(
        "evaluate", folder / "one", "--target", folder / "target", *SIZES, "--suite", "plain", "--charts", tmp_path
    )
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["acceptance.png", "drift.png"]


def test_the_target_is_asked_for(folder: Path) -> None:
    result = run("evaluate", folder / "one")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--target" in result.stderr


def test_a_target_without_weights_is_one_line(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (bare / name).write_bytes((folder / "target" / name).read_bytes())

    result = run("evaluate", folder / "one", "--target", bare, *SIZES, "--suite", "plain")

    assert result.exit_code == 3
    assert result.stderr.strip().splitlines()[-1].startswith("error: ")
    assert "Traceback" not in result.stderr
