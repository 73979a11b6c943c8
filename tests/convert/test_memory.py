"""Memory does not grow with the checkpoint."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import memory

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_copy_and_cast_stay_within_the_limit(tmp_path: Path) -> None:
    peaks = memory.main(["--size", "320", "--folder", str(tmp_path)])
    assert max(peaks.values()) < 250
