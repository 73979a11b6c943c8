"""Memory does not grow with the number of prompts: features go to the disk shard by shard and come back so."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.measure import peak_mib
from tests.models.tiny_target import fitting, write_drafter, write_prompts, write_target

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ten_times_the_prompts_need_no_more(tmp_path: Path) -> None:
    # Wide states, so that all of them together would show: 160 prompts have 190 MB.
    target = write_target(tmp_path / "target", hidden_size=1024, num_attention_heads=4)
    drafter = write_drafter(
        tmp_path / "drafter", fitting(target_hidden_size=1024, embedding=True, aux_layer_ids=(1, 3, 5))
    )
    peaks = []
    for count in (16, 160):
        prompts = write_prompts(tmp_path / f"{count}.jsonl", count)
        out = tmp_path / f"out-{count}"
        peaks.append(
            peak_mib(
                "-q", "upgrade", str(drafter), str(out), "--target", str(target), "--prompts", str(prompts),
                "--max-tokens", "32", "--ignore-eos",
            )
        )  # fmt: skip
    assert peaks[1] < peaks[0] + 40
