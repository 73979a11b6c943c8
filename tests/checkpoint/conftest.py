"""Fixtures for the tests of the checkpoint layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.checkpoint.helpers import CONFIG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder from files given by name; config.json is added unless it is given or None."""

    def make(files: dict[str, bytes | None]) -> Path:
        path = tmp_path / "drafter"
        path.mkdir()
        for name, content in {"config.json": CONFIG, **files}.items():
            if content is not None:
                (path / name).write_bytes(content)
        return path

    return make
