"""The limits that `python -m benchmarks.validate` measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.validate import (
    HEADER_LIMIT,
    MEMORY_LIMIT_MIB,
    SPEED_LIMIT,
    header_ratio,
    make_drafter,
    peak_mib,
    value_speed,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_headers_values_and_memory(tmp_path: Path) -> None:
    make_drafter(tmp_path / "drafter", 1 << 30)
    assert header_ratio(tmp_path / "drafter") < HEADER_LIMIT
    assert peak_mib(tmp_path / "drafter") < MEMORY_LIMIT_MIB
    ours, disk = value_speed(tmp_path / "drafter")
    assert ours > SPEED_LIMIT * disk
