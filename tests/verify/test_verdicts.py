"""What `eaglehub verify` makes of drafters that are better or worse, with a fake vLLM in place of the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run
from tests.drafters import build
from tests.verify.results import evidence, failed, verdicts

if TYPE_CHECKING:
    from tests.verify.conftest import Bench


@pytest.mark.parametrize("mode", ["lossy", "cut"])
def test_another_output_is_a_failure_that_names_the_place(bench: Bench, mode: str) -> None:
    result = bench.verify(mode, "--json")
    assert result.exit_code == 1
    assert "lossless.batch" in failed(result)
    (difference,) = evidence(result, "lossless.batch")["differences"]
    assert (difference["prompt"], difference["position"]) == (1, 5)
    assert (difference["token"], difference["margin"]) == ((9, 0.3) if mode == "lossy" else (None, None))


def test_a_tie_of_the_target_is_no_failure(bench: Bench) -> None:
    result = bench.verify("tied", "--json")
    assert result.exit_code == 0
    found = evidence(result, "lossless.batch")
    assert (found["num_ties"], found["num_differences"], found["same"]) == (1, 0, 5)
    assert found["ties"][0]["margin"] == 0.0005


def test_another_distribution_fails(bench: Bench) -> None:
    result = bench.verify("biased", "--json", "--select", "lossless.sampling")
    assert failed(result) == ["lossless.sampling"]
    assert evidence(result, "lossless.sampling")["p"] < 0.001


def test_a_defect_of_vllm_is_a_warning(bench: Bench) -> None:
    result = bench.verify("defect", "--json")
    assert (result.exit_code, verdicts(result)["lossless.sampling"]) == (0, "warn")


@pytest.mark.parametrize(("mode", "verdict"), [("refuses-json", "skipped"), ("drafter-refuses-json", "fail")])
def test_a_refused_job(bench: Bench, mode: str, verdict: str) -> None:
    assert verdicts(bench.verify(mode, "--json"))["lossless.json-schema"] == verdict


def test_a_useless_drafter_fails(bench: Bench) -> None:
    result = bench.verify("useless", "--json")
    assert failed(result) == ["speculating.acceptance-length", "diagnosis.cause"]
    (cause,) = (check for check in result.json()["checks"] if check["id"] == "diagnosis.cause")
    assert cause["summary"].startswith("unexplained: ")
    assert cause["evidence"]["missed"] == ["speculating.acceptance-length"]


def test_an_engine_that_does_not_draft_fails(bench: Bench) -> None:
    assert failed(bench.verify("lazy", "--json", "--select", "speculating.drafts")) == ["speculating.drafts"]


def test_thresholds(bench: Bench) -> None:
    length = bench.verify("good", "--json", "--no-write", "--select", "speculating").json()["acceptance"]
    length = length["acceptance_length"]
    asked = {
        "speculating.acceptance-length": (
            f"--min-acceptance-length={length + 0.01}",
            f"--min-acceptance-length={length}",
        ),
        "speculating.position-rates": ("--min-position-rate=1=0.5", "--min-position-rate=0=0.5"),
    }
    for check, (too_much, just_enough) in asked.items():
        assert failed(bench.verify("good", "--json", "--select", check, too_much)) == [check]
        assert failed(bench.verify("good", "--json", "--select", check, just_enough)) == []


def test_an_earlier_report_is_a_baseline(bench: Bench) -> None:
    assert bench.verify("good").exit_code == 0
    baseline = bench.drafter / "eaglehub-verify.json"
    kept = bench.folder / "baseline.json"
    kept.write_bytes(baseline.read_bytes())
    assert verdicts(bench.verify("good", "--json", "--baseline", kept))["speculating.baseline"] == "pass"
    assert "speculating.baseline" in failed(bench.verify("useless", "--json", "--baseline", kept))


def test_what_was_changed_by_hand_since_is_a_cause(bench: Bench) -> None:
    source = bench.drafter.rename(bench.folder / "source")
    assert run("convert", source, bench.drafter).exit_code == 0
    config = bench.drafter / "config.json"
    assert '"norm_output": true' in config.read_text()
    config.write_text(config.read_text().replace('"norm_output": true', '"norm_output": false'))
    (cause,) = (
        check for check in bench.verify("useless", "--json").json()["checks"] if check["id"] == "diagnosis.cause"
    )
    assert "differs from what eaglehub wrote in norm_output (true, now false)" in cause["summary"]


def test_two_drafters_are_compared_on_the_same_prompts(bench: Bench) -> None:
    other = build("vllm-3", bench.folder / "worse").path
    result = bench.verify("worse", "--json", "--compare", other)
    assert result.exit_code == 0
    assert verdicts(result)["speculating.compare"] == "pass"
    assert evidence(result, "speculating.compare")["difference"] > 0.3
    assert result.json()["compared"]["name"] == "worse"


def test_a_worse_drafter_fails_the_comparison(bench: Bench) -> None:
    build("vllm-3", bench.folder / "worse")
    args = ("--target", bench.target, "--python", bench.interpreter("worse"), "--limit", "6", "--json")
    result = run("verify", bench.folder / "worse", *args, "--compare", bench.drafter)
    assert "speculating.compare" in failed(result)
