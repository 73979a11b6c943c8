"""Writing a file and reading it back from the disk at the same time.

One thread appends blocks; the caller's thread follows it, re-reads what reached the disk and compares it with the
contents produced a second time. Where the system offers it, both go past the page cache (O_DIRECT): the comparison then
sees the disk rather than memory, a large file does not push everything else out of memory, and it costs a third of the
processor time. Elsewhere each block is flushed and dropped from the cache before it counts as written.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eaglehub.checkpoint.files import as_bytes, read_into
from eaglehub.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_DIRECT = getattr(os, "O_DIRECT", 0)
_PAGE = 4096
_BLOCK_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a file: `chunks` gives its contents, the same at every call.

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
    """Write a new file, flush it to the disk, and compare what the disk returns.

    Args:
        path: the file; must not exist.
        parts: its contents, in order. Their chunks are produced twice, from two threads at once.
        watch: called with each named part's name and each chunk as re-read; valid only during the call.
        progress: called with the number of bytes of named parts verified since its last call.

    Raises:
        EnvironmentProblem: the disk returned something else.
        OSError: writing failed.
    """
    level = _Level()
    writer = threading.Thread(target=_write, args=(path, parts, level), name=f"write {path.name}")
    path.touch(exist_ok=False)
    writer.start()
    try:
        _verify(path, parts, level, watch, progress)
    finally:
        level.stop()
        writer.join()


class _Level:
    """How far the file is on the disk: one thread raises it, the other waits for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._position = 0
        self._finished = False
        self._stopped = False
        self._error: BaseException | None = None

    def rise(self, position: int) -> bool:
        """Report progress; False when nobody waits any more."""
        with self._changed:
            self._position = position
            self._changed.notify()
            return not self._stopped

    def finish(self, error: BaseException | None = None) -> None:
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True

    def wait(self, position: float) -> None:
        """Block until the file reaches `position` or is finished; raises the other thread's error."""
        with self._changed:
            self._changed.wait_for(lambda: self._position >= position or self._finished)
            if self._error:
                raise self._error


class _File:
    """A descriptor that bypasses the page cache as long as the file system and the alignment allow."""

    def __init__(self, path: Path, flags: int) -> None:
        try:
            self._descriptor = os.open(path, flags | os.O_CLOEXEC | _DIRECT)
            self.direct = bool(_DIRECT)
        except OSError:
            self._descriptor = os.open(path, flags | os.O_CLOEXEC)
            self.direct = False

    def write(self, data: memoryview, offset: int) -> None:
        if len(data) % _PAGE:
            self._go_through_cache()
        written = 0
        while written < len(data):
            try:
                written += os.pwrite(self._descriptor, data[written:], offset + written)
            except OSError:
                if not self.direct:
                    raise
                self._go_through_cache()
        if not self.direct:
            self.flush()

    def read(self, buffer: memoryview, offset: int) -> int:
        try:
            return read_into(self._descriptor, buffer, offset)
        except OSError:
            if not self.direct:
                raise
            self._go_through_cache()
            return read_into(self._descriptor, buffer, offset)

    def flush(self) -> None:
        os.fsync(self._descriptor)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        os.close(self._descriptor)

    def _go_through_cache(self) -> None:
        if self.direct:
            flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags & ~_DIRECT)
            self.direct = False


def _write(path: Path, parts: Sequence[Part], level: _Level) -> None:
    try:
        file = _File(path, os.O_WRONLY)
        try:
            _append(file, parts, level)
            file.flush()
        finally:
            file.close()
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        level.finish(error)
    else:
        level.finish()


def _append(file: _File, parts: Sequence[Part], level: _Level) -> None:
    block = _aligned(_BLOCK_BYTES)
    position = filled = 0
    for part in parts:
        for chunk in part.chunks():
            data = as_bytes(chunk)
            while data.size:
                count = min(data.size, block.size - filled)
                block[filled : filled + count] = data[:count]
                data = data[count:]
                filled += count
                if filled == block.size:
                    file.write(block.data, position)
                    position, filled = position + filled, 0
                    if not level.rise(position):
                        return
    file.write(block[:filled].data, position)


def _verify(
    path: Path,
    parts: Sequence[Part],
    level: _Level,
    watch: Callable[[str, npt.NDArray[Any]], None] | None,
    progress: Callable[[int], None] | None,
) -> None:
    window = _Window(path, level)
    try:
        position = 0
        for part in parts:
            for chunk in part.chunks():
                found = window.read(position, chunk.nbytes)
                if not _same(found, as_bytes(chunk), position):
                    raise _mismatch(path)
                if watch and part.name:
                    watch(part.name, found.view(chunk.dtype).reshape(chunk.shape))
                if progress and part.name:
                    progress(chunk.nbytes)
                position += chunk.nbytes
        if window.file_size() != position:
            raise _mismatch(path)
    finally:
        window.close()


class _Window:
    """Reads a file that is still growing, through one reused, page-aligned buffer."""

    def __init__(self, path: Path, level: _Level) -> None:
        self._path = path
        self._file = _File(path, os.O_RDONLY)
        self._level = level
        self._buffer = _aligned(_BLOCK_BYTES)

    def read(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """The bytes there once they are on the disk (fewer if the file ends before); valid until the next call."""
        self._level.wait(position + size)
        start = position - position % _PAGE
        length = math.ceil((position + size - start) / _PAGE) * _PAGE
        if length > self._buffer.size:
            self._buffer = _aligned(length)
        count = self._file.read(self._buffer[:length].data, start)
        return self._buffer[position - start : min(count, position - start + size)]

    def file_size(self) -> int:
        """The final size, after waiting for the writer."""
        self._level.wait(math.inf)
        return self._path.stat().st_size

    def close(self) -> None:
        self._file.close()


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(mmap.mmap(-1, size), np.uint8)


def _same(found: npt.NDArray[np.uint8], expected: npt.NDArray[np.uint8], position: int) -> bool:
    if found.size != expected.size:
        return False
    # Whole words where the place in the file allows: several times faster than bytes.
    word = f"u{math.gcd(position, expected.size, 8)}"
    return np.array_equal(found.view(word), expected.view(word))


def _mismatch(path: Path) -> EnvironmentProblem:
    return EnvironmentProblem(
        "the disk returned other bytes than were written", where=path.name, fix="check the disk and the memory"
    )
