"""What `eaglehub verify` is wrongly asked for, and input that it cannot use: told before an engine runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.verify.conftest import Bench


def test_no_baseline_at_all(bench: Bench) -> None:
    result = bench.verify("good", "--baseline", bench.drafter / "config.json")
    assert (result.exit_code, result.stderr) == (3, "error: config.json: is not a report of eaglehub verify\n")


@pytest.mark.parametrize(
    ("option", "name"),
    [("--max-tokens=5", "--max-tokens"), ("--num-speculative-tokens=3", "--num-spec"), ("--limit=3", "prompts")],
)
def test_a_baseline_of_something_else_is_refused(bench: Bench, option: str, name: str) -> None:
    assert bench.verify("good").exit_code == 0
    result = bench.verify("good", "--baseline", bench.drafter / "eaglehub-verify.json", option)
    assert result.exit_code == 2
    assert f"was measured with other {name}" in result.stderr


def test_unreadable_input(bench: Bench) -> None:
    prompts = bench.folder / "prompts.jsonl"
    prompts.write_text("{")
    for args in (
        ("--prompts", prompts),
        ("--prompts", bench.folder / "absent.jsonl"),
        ("--compare", bench.folder / "x"),
    ):
        result = bench.verify("good", *args)
        assert (result.exit_code, result.stdout) == (3, "")
        assert len(result.stderr.splitlines()) == 1
    (bench.drafter / "model.safetensors").write_bytes(b"")
    assert bench.verify("good").exit_code == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--select", "lossles"), "no check is called 'lossles'"),
        (("--min-position-rate", "5=0.1"), "there is no draft position 5 (0 to 4)"),
        (("--min-position-rate", "x"), "is not I=R"),
        (("--min-ratio", "x"), "is not SUITE=R"),
        (("--min-ratio", "short=0.9"), "there is no suite 'short' (one of long, no_bos, "),
        (("--engine-arg", "x"), "is not KEY=VALUE"),
        (("--engine-arg", "model=y"), "model cannot be set (use --target)"),
        (("--python", "no-such-python"), "there is no interpreter 'no-such-python'"),
        (("--prompts", "chatt"), "neither a file nor one of"),
        (("--format", "sarif"), "'sarif' is not one of"),
    ],
)
def test_wrong_usage(bench: Bench, args: tuple[str, ...], message: str) -> None:
    result = bench.verify("good", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    result = bench.verify("hang")
    assert result.exit_code == 4
    assert "--no-write" in result.stderr
