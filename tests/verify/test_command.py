"""`eaglehub verify` end to end, with a fake vLLM in place of the real one: what it reports, and where."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from eaglehub.verify.checks import CATALOGUE
from tests.drafters import build
from tests.reports import validate
from tests.verify.results import verdicts

if TYPE_CHECKING:
    from tests.verify.conftest import Bench

USUAL = [check.id for check in CATALOGUE.values() if not check.on_request]
# What the fake vLLM does not show.
HIDDEN = ("loaded.weights", "loaded.flags", "faithful.drafts", "diagnosis.cause")


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
