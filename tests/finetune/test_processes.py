"""What only shows in processes of their own: two that train as one, one that is killed, and memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file

from benchmarks.measure import peak_mib, peak_mib_of
from tests.models.tiny_target import fitting, write_drafter, write_prompts, write_target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow
_LOSS = """
import sys
import torch
from eaglehub.finetune.loss import Judged, TargetHead, soft_cross_entropy
vocab, rows = int(sys.argv[1]), 1024
states, head = (torch.randn(count, 16, requires_grad=True) for count in (3 * rows, vocab))
judged = Judged(torch.randn(rows, 16), torch.arange(3 * rows).view(3, rows), torch.ones(3, rows))
soft_cross_entropy(states, head, TargetHead(torch.randn(vocab, 16)), judged).loss.backward()
"""


def arguments(drafter: Path, out: Path, target: Path, prompts: Path, *others: str) -> list[str]:
    return [
        "finetune", str(drafter), str(out), "--target", str(target), "--prompts", str(prompts), "--held-out",
        str(prompts), "--max-tokens", "16", "--ignore-eos", "--device", "cpu", "--lr", "0.01", "--trainable", "all",
        "--batch-tokens", "128", *others,
    ]  # fmt: skip


def losses(out: Path) -> list[float]:
    lines = out.with_name(f"{out.name}.finetune").joinpath("metrics.jsonl").read_text().splitlines()
    return [entry["loss"] for entry in map(json.loads, lines) if "loss" in entry]


def ended(command: Sequence[str]) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_two_processes_train_as_one(tmp_path: Path, drafters: dict[str, Path], target: Path, prompts: Path) -> None:
    options = ("--max-steps", "12", "--evaluate-every", "6")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    launch = {
        "one": [sys.executable, "-m", "eaglehub"],
        "two": [*torchrun, "-m", "eaglehub"],
    }

    for name, command in launch.items():
        code = ended([*command, *arguments(drafters["llama"], tmp_path / name, target, prompts, *options)])
        assert code == 0, name

    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in launch)
    for name, tensor in one.items():
        torch.testing.assert_close(two[name].float(), tensor.float(), atol=5e-3, rtol=2e-2)


def test_a_killed_run_ends_as_if_it_had_not_been(
    tmp_path: Path, drafters: dict[str, Path], target: Path, prompts: Path
) -> None:
    options = ("--max-steps", "80", "--evaluate-every", "10", "--patience", "100")
    command = [sys.executable, "-m", "eaglehub"]
    whole = ended([*command, *arguments(drafters["llama"], tmp_path / "whole", target, prompts, *options)])
    again = [*command, *arguments(drafters["llama"], tmp_path / "out", target, prompts, *options)]
    metrics = tmp_path / "out.finetune" / "metrics.jsonl"

    with subprocess.Popen(again, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (metrics.exists() and len(metrics.read_text().splitlines()) > 30):
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "out").exists()

    assert ended(again) == whole == 0
    assert losses(tmp_path / "out") == losses(tmp_path / "whole")
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "out"))
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    # Wide states, so that all of them together would show: 80 prompts have 70 MB.
    target = write_target(tmp_path / "target", hidden_size=1024, num_attention_heads=4)
    drafter = write_drafter(tmp_path / "drafter", fitting(target_hidden_size=1024, embedding=True))
    peaks = []
    for count in (8, 80):
        prompts = write_prompts(tmp_path / f"{count}.jsonl", count)
        options = arguments(drafter, tmp_path / f"out-{count}", target, prompts, "--limit", str(count))
        peaks.append(peak_mib("-q", *options, "--max-steps", "8", "--evaluate-every", "8"))
    assert peaks[1] < peaks[0] + 30


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_vocabulary() -> None:
    # One float for each judged position and token would be 512 MiB more.
    small, large = (peak_mib_of(_LOSS, str(vocab)) for vocab in (1 << 12, 1 << 17))
    assert large < small + 100
