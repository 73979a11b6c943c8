"""`eaglehub verify` on the real target with the real drafter, converted, on prompts that it has never seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vllm_runs.conftest import Convert

pytestmark = pytest.mark.vllm


def test_the_real_drafter_has_the_acceptance_it_was_measured_with(shared: Path, target: Path, convert: Convert) -> None:
    drafter = convert(shared / "drafters" / "smollm2-eagle3-specforge")
    prompts = shared / "data" / "smollm2-fresh.jsonl"
    result = run("verify", drafter, "--target", target, "--prompts", prompts, "--dtype", "float32", "--json")
    report = validate(result)
    assert result.exit_code == 0, report["checks"]
    acceptance = report["acceptance"]
    assert acceptance["acceptance_length"] == pytest.approx(1.5, abs=0.15)
    rates = acceptance["per_position_acceptance_rates"]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(0.33, abs=0.08)
