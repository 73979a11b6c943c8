"""A tiny target and a drafter for it, trained on the spot: small enough for a test, good enough to be worth verifying.

`trained(kind, cache)` gives the folder of a `kind` of `KINDS`, made when the cache has none. It needs torch and
transformers, and about a minute the first time.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kept import kept

KINDS = ("llama", "qwen3", "mla")
# Raised when training changes, so that models that are cached already are made anew.
_VERSION = 1
_TIMEOUT_S = 1200
_ROOT = Path(__file__).resolve().parents[2]


def trained(kind: str, cache: Path) -> Path:
    """A folder with `target`, `drafter` (EAGLE-3), for llama also `drafter-3.1`, and `prompts.jsonl`."""

    def make(folder: Path) -> None:
        command = [sys.executable, "-m", "examples.tiny.train", kind, str(folder)]
        subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S, cwd=_ROOT)

    return kept(cache / f"tiny-{kind}-{_VERSION}", make)
