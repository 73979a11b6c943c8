"""Validating a large drafter takes no more memory than a small one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.measure import peak_mib
from benchmarks.validate import MEMORY_LIMIT_MIB, make_native

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_memory_stays_within_the_limit(tmp_path: Path) -> None:
    make_native(tmp_path, 320 << 20)

    assert peak_mib("validate", str(tmp_path / "drafter")) < MEMORY_LIMIT_MIB
