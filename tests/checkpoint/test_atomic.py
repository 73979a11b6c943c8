"""The output appears whole or not at all, and nothing of the user's is lost."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from eaglehub.checkpoint import open_checkpoint, staging, transfer, write_checkpoint
from eaglehub.errors import EaglehubError, EnvironmentProblem, UsageProblem
from tests.checkpoint.helpers import CONFIG, litter, output, values

ROOT = Path(__file__).parents[2]
SMALL = values("F32", (10,))


def write(destination: Path, array: np.ndarray = SMALL, **options: object) -> None:
    write_checkpoint(destination, [output("a", array)], {"config.json": CONFIG}, **options)


def first(destination: Path) -> float:
    return float(open_checkpoint(destination).read("a").reshape(-1)[0])


def test_an_empty_folder_is_filled_and_a_full_one_needs_force(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    write(out)
    with pytest.raises(UsageProblem, match="--force"):
        write(out)
    write(out, SMALL + 1, force=True)
    assert first(out) == SMALL[0] + 1
    assert out.stat().st_mode & 0o777 == 0o777 & ~_umask()
    assert (out / "config.json").stat().st_mode & 0o777 == 0o666 & ~_umask()
    assert litter(tmp_path, "out") == []


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_force_replaces_only_drafters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").touch()
    write(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path / "real")
    cases = {
        "thesis": "no drafter",
        "link": "is a link",
        "file": "not a folder",
        "real": "current folder",
        "absent/out": "does not exist",
    }
    for name, message in cases.items():
        with pytest.raises(UsageProblem, match=message):
            write(tmp_path / name, force=True)
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path / "real", tmp_path / "real/inner"):
        with pytest.raises(UsageProblem, match="the source"):
            write(tmp_path / "real", force=True, protect=[folder])
    assert first(tmp_path / "real") == SMALL[0]


def test_an_exception_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path / "out")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for destination in (tmp_path / "out", tmp_path / "new"):
        for hook in ("watch", "progress", "late_files"):
            with pytest.raises(KeyboardInterrupt):
                write(destination, SMALL + 1, force=True, **{hook: interrupt})
    assert first(tmp_path / "out") == SMALL[0]
    assert litter(tmp_path, "out") == []


def test_a_full_disk_says_so(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(EnvironmentProblem, match="larger than allowed"):
            write(tmp_path / "out", values("F32", (1 << 20,)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert litter(tmp_path) == []


def test_no_space_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(EnvironmentProblem, match="disk is full") as caught:
        write(tmp_path / "out")
    assert caught.value.exit_code == 4
    assert litter(tmp_path) == []


def test_a_disk_that_returns_other_bytes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite

    def flip(descriptor: int, data: memoryview, offset: int) -> int:
        return pwrite(descriptor, bytes(data[:-1]) + bytes([data[-1] ^ 1]), offset)

    monkeypatch.setattr(os, "pwrite", flip)
    with pytest.raises(EnvironmentProblem, match="other bytes than were written"):
        write(tmp_path / "out")
    assert litter(tmp_path) == []


def test_an_error_of_the_disk_while_flushing_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", failing)
    monkeypatch.setattr(transfer, "_FLUSH_SECONDS", 0)
    with pytest.raises(EnvironmentProblem, match="disk is full"):
        write(tmp_path / "out", values("F32", (1 << 20,)))
    assert litter(tmp_path) == []


def test_a_producer_that_breaks_its_promise_is_a_bug(tmp_path: Path) -> None:
    from eaglehub.checkpoint import OutputTensor

    for shape, dtype in (((11,), "F32"), ((9,), "F32"), ((10,), "I32")):
        with pytest.raises(EaglehubError, match="promise") as caught:
            write_checkpoint(tmp_path / "out", [OutputTensor("a", dtype, shape, lambda: iter([SMALL]))], {})
        assert caught.value.exit_code == 70
    with pytest.raises(UsageProblem, match="plain file name"):
        write_checkpoint(tmp_path / "out", [output("a", SMALL)], {"../x": b""})
    assert litter(tmp_path) == []


STAGE = ".out.eaglehub-0123abcd"


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The folder after a run that was killed between the two renames of a replacement."""
    write(tmp_path / "old")
    write(tmp_path / "new", SMALL + 1)
    (tmp_path / "old").rename(tmp_path / f"{STAGE}.old")
    (tmp_path / "new").rename(tmp_path / STAGE)
    return tmp_path


def test_a_kill_between_the_renames_loses_nothing(killed: Path) -> None:
    with pytest.raises(UsageProblem, match="--force"):
        write(killed / "out", SMALL + 2)
    assert first(killed / "out") == SMALL[0]
    assert litter(killed, "out") == []


def test_what_was_moved_aside_is_kept_when_its_place_is_taken(killed: Path) -> None:
    (killed / "out").mkdir()
    (killed / "out/config.json").touch()
    with pytest.raises(UsageProblem, match=r"former contents are in \.out"):
        write(killed / "out", force=True)
    assert first(killed / f"{STAGE}.old") == SMALL[0]


def test_a_kill_after_the_renames_leaves_only_rubbish(killed: Path) -> None:
    (killed / STAGE).rename(killed / "out")
    write(killed / "out", SMALL + 2, force=True)
    assert first(killed / "out") == SMALL[0] + 2
    assert litter(killed, "out") == []


def test_what_was_moved_aside_is_never_removed_as_the_only_copy(killed: Path) -> None:
    shutil.rmtree(killed / STAGE)
    with pytest.raises(UsageProblem, match="--force"):
        write(killed / "out")
    assert first(killed / "out") == SMALL[0]


def test_a_swap_that_fails_half_way_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out")
    rename = Path.rename

    def fail_to_place(path: Path, target: Path) -> Path:
        if path.name.startswith(".out") and not path.name.endswith(".old"):
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_to_place)
    with pytest.raises(EnvironmentProblem, match="Input/output error"):
        write(tmp_path / "out", SMALL + 1, force=True)
    assert first(tmp_path / "out") == SMALL[0]
    assert litter(tmp_path, "out") == []


def test_a_live_run_is_left_alone(tmp_path: Path) -> None:
    with staging.staged_folder(tmp_path / "out") as stage:
        write(tmp_path / "out")
        assert stage.exists()
        (tmp_path / "out/model.safetensors").unlink()
        (tmp_path / "out/config.json").unlink()
    assert list((tmp_path / "out").iterdir()) == []


WRITER = """
import sys
from pathlib import Path
from tests.checkpoint.helpers import CONFIG, output, values
from eaglehub.checkpoint import write_checkpoint
array = values("F32", (1500, 1000)) + float(sys.argv[2])
tensors = [output(f"a{i or ''}", array, rows=100) for i in range(int(sys.argv[3]))]
print("ready", flush=True)
write_checkpoint(Path(sys.argv[1]), tensors, {"config.json": CONFIG}, force=True)
"""


def kill_rounds(folder: Path, rounds: int) -> None:
    source = random.Random(7)
    allowed: set[float | None] = {None}
    for number in range(1, rounds + 1):
        arguments = [sys.executable, "-c", WRITER, str(folder / "out"), str(1000 * number), "1"]
        with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stdout.readline()
            time.sleep(source.uniform(0, 0.08))
            process.send_signal(signal.SIGKILL)
        base = float(values("F32", (1500, 1000))[0, 0])
        allowed.add(base + 1000 * number)
        found = first(folder / "out") if (folder / "out").exists() else None
        assert found in allowed
        if found is not None:
            array = open_checkpoint(folder / "out").read("a")
            assert np.array_equal(array, values("F32", (1500, 1000)) + (found - base))
    write(folder / "out", force=True)
    assert litter(folder, "out") == []


def test_kills_leave_the_output_whole_or_absent(tmp_path: Path) -> None:
    kill_rounds(tmp_path, 5)


def test_an_interrupt_from_the_keyboard_cleans_up(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", WRITER, str(tmp_path / "out"), "0", "100"]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline()
        while not litter(tmp_path):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert b"KeyboardInterrupt" in errors
    assert litter(tmp_path) == []


@pytest.mark.slow
def test_many_kills_leave_the_output_whole_or_absent(tmp_path: Path) -> None:
    kill_rounds(tmp_path, 100)
