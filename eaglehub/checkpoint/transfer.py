"""Writing a file, reading every byte of it back and comparing, while the disk is already busy with it.

Each block is read back through the system right after it was written, so that it is compared while it is at hand. A
second thread flushes meanwhile: the disk need not wait for the last block, nor the caller for the whole file.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.files import as_bytes, read_into
from eaglehub.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

# Written, read back, compared and looked at while it is in the processor's cache.
_BLOCK_BYTES = 256 << 10
_FLUSH_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a file.

    Attributes:
        name: the tensor's name, empty for anything else.
        chunks: arrays whose bytes in C order follow one another.
    """

    name: str
    chunks: Callable[[], Iterator[npt.NDArray[Any]]]


def write_verified(
    path: Path,
    parts: Sequence[Part],
    *,
    watch: Callable[[str, npt.NDArray[Any]], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write a new file, compare what the system returns for it, and flush it to the disk.

    Args:
        path: the file; must not exist.
        parts: its contents, in order.
        watch: called with each named part's name and each block as read back, flat; valid only during the call.
        progress: called with the number of bytes of named parts done since its last call.

    Raises:
        EnvironmentProblem: the system returned other bytes.
        OSError: writing failed.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with _flushing(descriptor):
            _write(descriptor, path, parts, watch, progress)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(
    descriptor: int,
    path: Path,
    parts: Sequence[Part],
    watch: Callable[[str, npt.NDArray[Any]], None] | None,
    progress: Callable[[int], None] | None,
) -> None:
    import numpy as np

    returned = np.empty(_BLOCK_BYTES, np.uint8)
    position = 0
    for part in parts:
        for chunk in part.chunks():
            data = as_bytes(chunk)
            for start in range(0, data.size, _BLOCK_BYTES):
                block = data[start : start + _BLOCK_BYTES]
                _write_all(descriptor, block.data, position)
                found = returned[: block.size]
                if read_into(descriptor, found.data, position) != block.size or not _same(found, block):
                    raise EnvironmentProblem(
                        "the disk returned other bytes than were written",
                        where=path.name,
                        fix="check the disk and the memory",
                    )
                if watch and part.name:
                    watch(part.name, found.view(chunk.dtype))
                position += block.size
            if progress and part.name:
                progress(data.size)


def _write_all(descriptor: int, data: memoryview, offset: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(descriptor, data[written:], offset + written)


def _same(found: npt.NDArray[np.uint8], expected: npt.NDArray[np.uint8]) -> bool:
    import numpy as np

    # Whole words first: several times faster than bytes.
    words = found.size - found.size % 8
    return np.array_equal(found[:words].view(np.uint64), expected[:words].view(np.uint64)) and np.array_equal(
        found[words:], expected[words:]
    )


@contextmanager
def _flushing(descriptor: int) -> Iterator[None]:
    """Keep flushing the file while the block runs; an error of the disk shows at the caller's own fsync."""
    done = threading.Event()
    errors: list[OSError] = []

    def flush() -> None:
        while not done.wait(_FLUSH_SECONDS):
            try:
                os.fdatasync(descriptor)
            except OSError as error:
                # The system reports a failed write-back once only: kept, or it would be lost.
                errors.append(error)
                return

    thread = threading.Thread(target=flush, name="flush", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if errors:
        raise errors[0]
