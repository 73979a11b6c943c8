"""Runs `engine.py` in a process group of its own, and ends the whole group when it takes too long."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENGINE = Path(__file__).with_name("engine.py")


@dataclass(frozen=True)
class Served:
    """What `engine.py` reports; see there for the meaning of each field."""

    tokens: list[list[int]]
    drafts: int
    accepted: list[int]
    noted: list[dict[str, Any]]
    aux_layers: list[int]
    runner: str
    v2_reads: list[int] | None


def serve(
    target: Path,
    drafter: Path,
    prompts: list[str] | list[list[int]],
    folder: Path,
    *,
    max_tokens: int,
    draft_tokens: int,
    timeout_s: float,
    noted: int = 0,
    ignore_eos: bool = False,
    engine: dict[str, Any] | None = None,
) -> Served:
    """Have an engine answer the prompts; `folder` is for the files that are exchanged with it."""
    request = {
        "target": str(target),
        "drafter": str(drafter),
        "prompts": prompts,
        "max_tokens": max_tokens,
        "draft_tokens": draft_tokens,
        "noted": noted,
        "ignore_eos": ignore_eos,
        "engine": engine or {},
    }
    request_file, result_file = folder / "request.json", folder / "result.json"
    request_file.write_text(json.dumps(request), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, ENGINE, request_file, result_file],
        env=os.environ | {"VLLM_USE_V2_MODEL_RUNNER": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        log, _ = process.communicate(timeout=timeout_s)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, log[-4000:]
    return Served(**json.loads(result_file.read_text(encoding="utf-8")))
