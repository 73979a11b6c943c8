"""`eaglehub verify` end to end, with a fake vLLM in place of the real one."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from eaglehub.verify.checks import CATALOGUE
from tests.cli_runner import run
from tests.drafters import build
from tests.reports import validate

if TYPE_CHECKING:
    from tests.cli_runner import Result
    from tests.verify.conftest import Bench

USUAL = [check.id for check in CATALOGUE.values() if not check.on_request]

# What the fake vLLM does not show.
HIDDEN = ("loaded.weights", "loaded.flags", "faithful.drafts", "diagnosis.cause")


def verdicts(result: Result) -> dict[str, str]:
    return {check["id"]: check["verdict"] for check in validate(result)["checks"]}


def failed(result: Result) -> list[str]:
    return [check for check, verdict in verdicts(result).items() if verdict == "fail"]


def evidence(result: Result, check: str) -> dict[str, Any]:
    (found,) = (found for found in result.json()["checks"] if found["id"] == check)
    numbers: dict[str, Any] = found["evidence"]
    return numbers


def test_a_good_drafter_passes(bench: Bench) -> None:
    result = bench.verify("good", "--json")
    assert result.exit_code == 0
    found = verdicts(result)
    assert list(found) == USUAL
    assert {check for check, verdict in found.items() if verdict != "pass"} == {
        *HIDDEN,
        "speculating.position-rates",
        "speculating.baseline",
        "speculating.compare",
    }
    acceptance = result.json()["acceptance"]
    drafts = 6 * 40 + 2 * (0 + 1 + 2)
    accepted = 2 * sum((10 + extra) + 2 * 5 + 3 * 3 + 4 + 5 for extra in range(3))
    assert acceptance["num_drafts"] == drafts
    assert acceptance["acceptance_length"] == pytest.approx(1 + accepted / drafts)
    assert acceptance["acceptance_rate"] == pytest.approx(accepted / (5 * drafts))
    assert acceptance["per_position_acceptance_rates"][4] == pytest.approx(6 / drafts)
    assert acceptance["conditional_acceptance_rates"][4] == pytest.approx(0.5)


def test_the_report_is_written_beside_the_weights_and_says_the_same(bench: Bench) -> None:
    shown = bench.verify("good", "--json").json()
    written = json.loads((bench.drafter / "eaglehub-verify.json").read_text())
    assert written == shown
    again = bench.verify("good", "--json", "--no-write").json()
    assert again["drafter"] == shown["drafter"]


def test_no_write(bench: Bench) -> None:
    before = sorted(bench.drafter.iterdir())
    assert bench.verify("good", "--no-write").exit_code == 0
    assert sorted(bench.drafter.iterdir()) == before


def test_the_report_names_what_was_measured(bench: Bench) -> None:
    report = bench.verify("good", "--json").json()
    config = json.loads((bench.drafter / "config.json").read_text())
    assert report["drafter"]["config"] == config
    fc = next(tensor for tensor in report["drafter"]["tensors"] if tensor["name"] == "fc.weight")
    built = build("vllm-3.1", bench.folder / "again").tensors["fc.weight"]
    assert fc["sha256"] == hashlib.sha256(built.tobytes()).hexdigest()
    assert report["engine"]["vllm"] == "0.0.fake"
    assert [each["name"] for each in report["time"]["runs"]] == ["target", "drafter"]


def test_no_path_and_no_prompt_is_told_unless_asked(bench: Bench) -> None:
    config = json.loads((bench.drafter / "config.json").read_text()) | {"_name_or_path": "/home/someone/secret"}
    (bench.drafter / "config.json").write_text(json.dumps(config))
    private = bench.folder / "private.jsonl"
    private.write_text(json.dumps({"messages": [{"role": "user", "content": "a private matter"}]}))
    quiet = bench.verify("good", "--json", "--prompts", private).stdout
    assert not any(word in quiet for word in (str(bench.folder), "/home/", "secret", "private matter"))
    told = bench.verify("good", "--json", "--prompts", private, "--include-text")
    assert validate(told)["prompts"]["texts"][0]["messages"][0]["content"] == "a private matter"


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


@pytest.mark.parametrize(
    ("option", "name"),
    [("--max-tokens=5", "--max-tokens"), ("--num-speculative-tokens=3", "--num-spec"), ("--limit=3", "prompts")],
)
def test_a_baseline_of_something_else_is_refused(bench: Bench, option: str, name: str) -> None:
    assert bench.verify("good").exit_code == 0
    result = bench.verify("good", "--baseline", bench.drafter / "eaglehub-verify.json", option)
    assert result.exit_code == 2
    assert f"was measured with other {name}" in result.stderr


def test_no_baseline_at_all(bench: Bench) -> None:
    result = bench.verify("good", "--baseline", bench.drafter / "config.json")
    assert (result.exit_code, result.stderr) == (3, "error: config.json: is not a report of eaglehub verify\n")


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


def test_only_what_is_asked_for_is_run(bench: Bench) -> None:
    report = bench.verify("good", "--json", "--select", "speculating.drafts").json()
    assert [check["id"] for check in report["checks"]] == ["engine.drafter", "speculating.drafts"]
    assert [each["name"] for each in report["time"]["runs"]] == ["drafter"]
    assert [each["name"] for each in report["time"]["runs"][0]["jobs"]] == ["batch"]
    left_out = ("lossless", "loaded", "faithful", "diagnosis", "speculating.compare")
    ignoring = bench.verify("good", "--json", *(f"--ignore={name}" for name in left_out)).json()
    assert [check["id"].partition(".")[0] for check in ignoring["checks"]] == ["engine"] + ["speculating"] * 4


def test_junit(bench: Bench) -> None:
    result = bench.verify("lossy", "--format", "junit")
    (suite,) = ET.fromstring(result.stdout)
    assert (suite.get("name"), suite.get("tests")) == ("drafter", str(len(USUAL)))
    broken = [case.get("name") for case in suite if case.find("failure") is not None]
    assert broken[0] == "lossless.batch greedy output is the target's own, many prompts at once"
    assert len(broken) == int(suite.get("failures") or 0)


def test_text(bench: Bench) -> None:
    lines = bench.verify("crash").stdout.splitlines()
    assert lines[0] == "drafter on target"
    assert lines[1].split()[:2] == ["fail", "engine.drafter"]
    assert "IndexError: index 900 out of range: a token id lies outside the vocabulary" in lines[1]
    assert "    log: ERROR x: bad" in lines
    assert lines[-1] == "verdict: fail"
    assert not any("Traceback" in line or "home" in line for line in lines)


@pytest.mark.parametrize(
    ("mode", "cause"),
    [
        ("crash", "outside the vocabulary"),
        ("killed", "was ended by signal 9 (Killed): killed, most often by the system when memory runs out"),
        ("silent", "ended with exit code 3"),
    ],
)
def test_a_drafter_that_brings_the_engine_down_is_a_failed_check(bench: Bench, mode: str, cause: str) -> None:
    result = bench.verify(mode, "--json", "--select", "speculating")
    assert result.exit_code == 1
    assert failed(result) == ["engine.drafter"]
    report = result.json()
    assert cause in report["checks"][0]["summary"]
    # Only the target alone can tell whose fault it is.
    assert [each["name"] for each in report["time"]["runs"]] == ["drafter", "target"]


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("crash-target", "job batch: vLLM does not run the target alone: IndexError: index 900 out of range"),
        ("memory", "can't allocate memory: there is not enough memory"),
        ("no-vllm", "vLLM is not installed there (pip install 'eaglehub[vllm]', or --python INTERPRETER)"),
    ],
)
def test_a_target_that_does_not_run_is_the_environment(bench: Bench, mode: str, message: str) -> None:
    result = bench.verify(mode)
    assert (result.exit_code, result.stdout) == (4, "")
    assert message in result.stderr
    assert "someone" not in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("error: ")]) == 1


def _alive(pids: str) -> list[int]:
    return [int(pid) for pid in pids.split() if Path(f"/proc/{pid}").exists() and _state(pid) != "Z"]


def _state(pid: str) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize(("mode", "code"), [pytest.param("hang", 4, marks=pytest.mark.slow), ("hang-drafter", 1)])
def test_a_hanging_engine_is_ended_with_all_its_processes(
    bench: Bench, mode: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PIDS", str(bench.folder / "pids"))
    started = time.monotonic()
    result = bench.verify(mode, "--timeout", "1.5")
    assert result.exit_code == code
    assert "no result after 1.5 s: it hangs" in result.stderr + result.stdout
    assert time.monotonic() - started < 20
    assert _alive((bench.folder / "pids").read_text()) == []


@pytest.mark.parametrize("signal_number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_no_process(bench: Bench, signal_number: int) -> None:
    pids = bench.folder / "pids"
    arguments = [bench.drafter, "--target", bench.target, "--python", bench.interpreter("hang")]
    process = subprocess.Popen(
        [sys.executable, "-m", "eaglehub", "verify", *map(str, arguments)],
        env=os.environ | {"FAKE_PIDS": str(pids)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not (pids.exists() and pids.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal_number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "interrupted"
    assert _alive(pids.read_text()) == []


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
