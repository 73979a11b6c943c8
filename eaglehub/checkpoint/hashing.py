"""Hashing a file from what is read of it anyway, so that a large file is read once."""

from __future__ import annotations

import hashlib
import queue
import threading
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.files import as_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from eaglehub.checkpoint.folder import File

_QUEUED_BLOCKS = 8
# What lies between two tensors that are read (the header, a dropped tensor) is fetched when it is no more than this.
_GAP_BYTES = 64 << 20


def folder_digest(hashes: Mapping[str, str]) -> str:
    """One SHA-256 over those of config.json and all weight files, which are given by name."""
    return hashlib.sha256("".join(f"{hashes[file]}  {file}\n" for file in sorted(hashes)).encode()).hexdigest()


class RunningHash:
    """SHA-256 of one file, computed in a thread of its own.

    Blocks are taken in the order of the file only; whatever was not offered in that order is read at the end.
    """

    def __init__(self, source: File) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self._position = 0
        self._blocks: queue.Queue[memoryview | None] = queue.Queue(_QUEUED_BLOCKS)
        self._thread = threading.Thread(target=self._work, name=f"hash {source.where}", daemon=True)
        self._thread.start()

    def offer(self, position: int, block: npt.NDArray[Any]) -> None:
        """Take a block that was read at `position`, if it is the next one; it must not be changed afterwards."""
        gap = position - self._position
        if not 0 <= gap <= _GAP_BYTES:
            return
        self._fill(gap)
        self._blocks.put(as_bytes(block).data)
        self._position = position + block.nbytes

    def finish(self) -> str:
        """Read the rest and return the hex digest.

        Raises:
            UnusableInput: the file changed or ended meanwhile.
        """
        self._fill(self._source.size - self._position)
        self.stop()
        return self._digest.hexdigest()

    def stop(self) -> None:
        """End the thread; what it has so far is lost unless `finish` called this."""
        if self._thread.is_alive():
            self._blocks.put(None)
            self._thread.join()

    def _fill(self, length: int) -> None:
        for block in self._source.blocks(self._position, length):
            self._blocks.put(block.data)
        self._position += length

    def _work(self) -> None:
        while (block := self._blocks.get()) is not None:
            self._digest.update(block)
