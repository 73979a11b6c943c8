"""Folders that take long to make: made once, and kept for later tests, other processes and the next run."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from filelock import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def kept(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, which `make` writes where there is none yet; a run that dies in the middle leaves no half of it."""
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        if not folder.is_dir():
            unfinished = folder.with_name(f"unfinished-{folder.name}-{os.getpid()}")
            try:
                make(unfinished)
                unfinished.rename(folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return folder
