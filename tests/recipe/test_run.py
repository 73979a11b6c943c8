"""Running recipes: only what is not done, one at a time, whatever happened before."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.drafters import build, target_config
from tests.reports import validate
from tests.verify.conftest import FAKE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.recipe.conftest import Kitchen

RAN, DONE, FAILED, SKIPPED, WOULD = "ran", "done before", "failed", "skipped", "would run"


def made(kitchen: Kitchen) -> dict[str, bytes]:
    """Bytes of the converted drafter."""
    folder = kitchen.folder / "work" / "drafter" / "convert" / "drafter"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_only_what_changed_is_done_again(kitchen: Kitchen) -> None:
    assert kitchen.statuses("--plan") == {"drafter": [WOULD, WOULD]}
    assert not (kitchen.folder / "work").exists()
    first = kitchen.run("--json")
    report = validate(first)
    assert first.exit_code == 0
    assert [step["report"]["kind"] for step in report["chains"][0]["steps"]] == ["convert", "validate"]
    assert kitchen.statuses() == {"drafter": [DONE, DONE]}
    assert "everything is done already" in kitchen.run().stdout
    assert kitchen.statuses("--plan", "--set", "validate.strict=true") == {"drafter": [DONE, WOULD]}
    (kitchen.folder / "work/drafter/convert/drafter/eaglehub-verify.json").write_text("{}")
    assert kitchen.statuses() == {"drafter": [DONE, DONE]}, "a report beside the drafter is not the drafter"
    before = made(kitchen)
    (kitchen.folder / "work/drafter/convert/drafter/config.json").write_text("{}")
    assert kitchen.statuses() == {"drafter": [RAN, DONE]}
    assert made(kitchen) == {name: data for name, data in before.items() if name != "eaglehub-verify.json"}
    build("vllm-3.1", kitchen.folder / "drafter2")
    assert kitchen.statuses("--set", "source=drafter2") == {"drafter": [RAN, RAN]}


def test_a_report_that_is_gone_from_beside_the_drafter_is_made_again(kitchen: Kitchen) -> None:
    """The card and the publication look for it there."""
    target_config("llama", kitchen.folder / "target")
    fake = kitchen.folder / "python"
    fake.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" good "$@"\n')
    fake.chmod(0o755)
    kitchen.write(
        """\
        source: drafter
        steps:
        - convert: {}
        - verify: {target: target, python: ./python, limit: 6, select: [lossless.batch]}
        """
    )
    assert kitchen.statuses() == {"drafter": [RAN, RAN]}
    assert kitchen.statuses() == {"drafter": [DONE, DONE]}
    (kitchen.folder / "work/drafter/convert/drafter/eaglehub-verify.json").unlink()
    assert kitchen.statuses() == {"drafter": [DONE, RAN]}


def test_steps_can_be_chosen(kitchen: Kitchen) -> None:
    assert kitchen.run("--from-step", "validate").exit_code == 2
    assert kitchen.statuses("--to-step", "convert") == {"drafter": [RAN]}
    assert kitchen.statuses("--from-step", "validate") == {"drafter": [DONE, RAN]}
    assert kitchen.statuses("--from-step", "validate") == {"drafter": [DONE, RAN]}


def test_one_that_fails_does_not_stop_the_others(kitchen: Kitchen) -> None:
    (kitchen.folder / "broken").mkdir()
    (kitchen.folder / "broken" / "config.json").write_text("[]")
    kitchen.write(
        """\
        steps:
        - convert: {}
        - validate: {}
        matrix:
          bad: {source: broken}
          good: {source: drafter}
          heir: {after: bad}
          next: {after: good, steps: {validate: {engine: none}}}
        """
    )
    result = kitchen.run("--json")
    assert result.exit_code == 3
    statuses = {chain["name"]: [step["status"] for step in chain["steps"]] for chain in result.json()["chains"]}
    assert statuses == {
        "bad": [FAILED, SKIPPED],
        "good": [RAN, RAN],
        "heir": [SKIPPED, SKIPPED],
        "next": [RAN, RAN],
    }
    assert kitchen.statuses()["bad"] == [FAILED, SKIPPED], "a failure is not done"
    assert kitchen.statuses()["next"] == [DONE, DONE]


def test_a_step_may_find_something_and_the_chain_go_on(kitchen: Kitchen) -> None:
    kitchen.write("source: drafter\nsteps:\n- validate: {}\n  name: before\n  go-on: true\n- convert: {}\n")
    result = kitchen.run("--json")
    assert result.exit_code == 0
    assert [step["exit_code"] for step in validate(result)["chains"][0]["steps"]] == [1, 0]
    assert kitchen.statuses() == {"drafter": [DONE, DONE]}


def test_a_secret_is_written_nowhere(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHICH_ENGINE", "no-such-secret-engine")
    kitchen.write("source: drafter\nsteps:\n- validate: {engine: '${WHICH_ENGINE}'}\n")
    assert kitchen.run().exit_code == 2
    files = [path for path in (kitchen.folder / "work").rglob("*") if path.is_file()]
    assert files
    assert not any(b"no-such-secret-engine" in path.read_bytes() for path in files)


def test_paths_may_begin_with_a_variable_or_at_home(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is there counts as much as what is named plainly."""
    monkeypatch.setenv("MODELS", str(kitchen.folder))
    monkeypatch.setenv("HOME", str(kitchen.folder))
    target_config("qwen3", kitchen.folder / "target", hidden_size=64, vocab_size=160)
    kitchen.write("source: ~/drafter\ntarget: ${MODELS}/target\nsteps:\n- convert: {}\n")
    assert kitchen.statuses() == {"drafter": [RAN]}
    assert kitchen.statuses() == {"drafter": [DONE]}
    config = kitchen.folder / "target/config.json"
    config.write_text(config.read_text() + "\n")
    assert kitchen.statuses("--plan") == {"drafter": [WOULD]}


@pytest.mark.slow
def test_damaged_notes_cost_time_and_nothing_else(kitchen: Kitchen) -> None:
    assert kitchen.statuses() == {"drafter": [RAN, RAN]}
    work = kitchen.folder / "work"
    for damage in (b"", b"[]", b"null", b'{"exit_code": 0}', b"[" * 100_000):
        for notes in (".digests.json", "drafter/convert/state.json", "drafter/validate/report.json"):
            (work / notes).write_bytes(damage)
        assert kitchen.statuses("--plan") == {"drafter": [WOULD, DONE]}


@pytest.mark.parametrize("work", ["drafter/config.json", "drafter/config.json/work", "circle", "/dev/null"])
def test_a_work_folder_that_cannot_be(kitchen: Kitchen, work: str) -> None:
    (kitchen.folder / "circle").symlink_to("circle")
    config = (kitchen.folder / "drafter/config.json").read_bytes()
    kitchen.write(f"source: drafter\nwork: {work}\nsteps:\n- convert: {{}}\n")
    result = kitchen.run()
    assert result.exit_code == 4
    assert len(result.stderr.splitlines()) == 1
    assert "cannot work there" in result.stderr
    assert (kitchen.folder / "drafter/config.json").read_bytes() == config


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_beside_a_drafter_is_not_waited_for(kitchen: Kitchen) -> None:
    os.mkfifo(kitchen.folder / "drafter" / "pipe")
    (kitchen.folder / "drafter" / "gone").symlink_to("nowhere")
    (kitchen.folder / "work").mkdir()
    assert kitchen.statuses("--plan") == {"drafter": [WOULD, WOULD]}


def test_two_runs_at_once(kitchen: Kitchen) -> None:
    (kitchen.folder / "work").mkdir()
    with (kitchen.folder / "work" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = kitchen.run()
    assert result.exit_code == 4
    assert "another run" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_run_that_is_ended_goes_on(kitchen: Kitchen, sent: int, code: int) -> None:
    """Nothing of it is left, and the next run gives what an undisturbed one would."""
    command = [sys.executable, "-m", "eaglehub", "run", kitchen.recipe]
    for delay in (0.1, 0.4):
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            assert process.stderr
            process.stderr.readline()  # it has named its first step
            time.sleep(delay)
            process.send_signal(sent)
            process.communicate(timeout=60)
            assert process.returncode in (code, 0)
    assert kitchen.run().exit_code == 0
    disturbed = made(kitchen)
    kitchen.write("source: drafter\nwork: other\nsteps:\n- convert: {}\n")
    assert kitchen.run().exit_code == 0
    for name, data in disturbed.items():
        assert (kitchen.folder / "other/drafter/convert/drafter" / name).read_bytes() == data


def test_a_step_ends_with_its_runner(tmp_path: Path) -> None:
    """The child of a runner that is killed must not go on writing."""
    script = (
        "import eaglehub.cli.step as step, threading, time\n"
        "threading.Thread(target=step._end_with_parent).start()\n"
        "time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, start_new_session=True)
    assert child.stdin
    time.sleep(0.3)
    child.stdin.close()
    assert child.wait(60) == -signal.SIGKILL


def test_state_is_json(kitchen: Kitchen) -> None:
    kitchen.run()
    state = json.loads((kitchen.folder / "work/drafter/convert/state.json").read_text())
    assert state["exit_code"] == 0
    assert os.fspath(kitchen.folder) not in json.dumps(state)


def test_a_folder_here_is_not_taken_for_a_name_on_the_hub(kitchen: Kitchen, capfd: pytest.CaptureFixture[str]) -> None:
    (kitchen.folder / "models").mkdir()
    (kitchen.folder / "drafter").rename(kitchen.folder / "models" / "drafter")
    target_config("llama", kitchen.folder / "models" / "target")
    kitchen.write("source: models/drafter\ntarget: models/target\nsteps: [convert: {}]\n")
    kitchen.run()
    assert "Hub" not in capfd.readouterr().err


def test_what_a_step_keeps_for_later_is_nothing_that_it_depends_on(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    kitchen.write("source: drafter\nsteps: [evaluate: {features: states, compare: work/drafter/other}]\n")
    monkeypatch.setattr("eaglehub.cli.run.sys.executable", shutil.which("true"))
    assert kitchen.statuses() == {"drafter": [RAN]}
    (kitchen.folder / "states").mkdir()
    (kitchen.folder / "states" / "shard").write_text("kept")
    assert kitchen.statuses() == {"drafter": [DONE]}
    (kitchen.folder / "work" / "drafter" / "other").mkdir()
    (kitchen.folder / "work" / "drafter" / "other" / "config.json").write_text("{}")
    assert kitchen.statuses() == {"drafter": [RAN]}
