"""Engines that crash, hang or are interrupted: whose fault it is, and no process that stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.verify.results import failed

if TYPE_CHECKING:
    from tests.verify.conftest import Bench


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
    result = bench.verify(mode, "--timeout", "3")
    assert result.exit_code == code
    assert "no result after 3 s: it hangs" in result.stderr + result.stdout
    assert time.monotonic() - started < 60
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
