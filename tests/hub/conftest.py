"""A drafter on the Hub, and fixtures of other folders that it goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.drafters import build
from tests.verify.conftest import bench

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hub import LoopbackHub

__all__ = ["bench", "drafter"]

CODE = b"raise SystemExit('nobody should run this')\n"


@pytest.fixture
def drafter(hub: LoopbackHub, tmp_path: Path) -> Path:
    """A sound drafter, also on the Hub: as acme/plain, and as acme/drafter with what should not be downloaded."""
    folder = build("vllm-3.1", tmp_path / "drafter").path
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    rest = {"README.md": b"# A drafter\n", "modeling.py": CODE, "optimizer.pt": b"\0" * 100, "old/config.json": b"{}"}
    hub.add("acme/plain", files)
    hub.add("acme/drafter", files | rest)
    return folder
