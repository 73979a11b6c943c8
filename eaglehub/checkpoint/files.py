"""Files: exact reads, hashes, writes that are whole or not there, and files that are not what their name says."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

CHUNK_BYTES = 512 << 10
_HASH_BYTES = 256 << 10
SMALL_FILE_BYTES = 64 << 20


class Impostor(NamedTuple):
    """What a file turned out to be instead."""

    what: str
    fix: str


def describe_impostor(start: bytes) -> Impostor | None:
    """What a file that starts so really is, when a download went wrong in a well-known way."""
    if start.startswith(b"version https://git-lfs.github.com/spec/"):
        return Impostor("is a Git LFS pointer, not the file itself", "run: git lfs pull")
    if start.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return Impostor("is an HTML page, not the file itself", "download it again; it may need a login")
    return None


def unreadable(error: OSError, where: str) -> UnusableInput:
    """The error for an input that the system would not let us read."""
    return UnusableInput(f"cannot be read: {error.strerror or error}", where=where)


def read_small_file(path: Path, where: str) -> bytes:
    """The whole file, at most 64 MiB.

    Raises:
        UnusableInput: absent, not a regular file, too large or unreadable.
    """
    try:
        if not path.is_file():
            raise UnusableInput("is not a file" if path.exists() else "does not exist", where=where)
        if path.stat().st_size > SMALL_FILE_BYTES:
            raise UnusableInput(f"is larger than {SMALL_FILE_BYTES >> 20} MiB", where=where)
        return path.read_bytes()
    except OSError as error:
        raise unreadable(error, where) from error


def read_into(descriptor: int, buffer: memoryview, offset: int) -> int:
    """Fill `buffer` from `offset` on; the number of bytes read, fewer only at the file's end."""
    filled = 0
    while filled < len(buffer):
        count = os.preadv(descriptor, [buffer[filled:]], offset + filled)
        if count == 0:
            break
        filled += count
    return filled


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as first seen; refused once it changed, so that header, weights and hash belong together."""

    path: Path
    where: str
    size: int
    identity: tuple[int, ...]

    @property
    def name(self) -> str:
        """Plain file name."""
        return self.path.name

    @classmethod
    def at(cls, path: Path, where: str) -> SourceFile:
        """The file at `path`, called `where` in messages.

        Raises:
            UnusableInput: it cannot be examined.
        """
        try:
            status = path.stat()
        except OSError as error:
            raise unreadable(error, where) from error
        return cls(path, where, status.st_size, _identity(status))

    @contextmanager
    def open(self) -> Iterator[int]:
        """A descriptor for reading; checks before and after use that the file is still the same.

        Raises:
            UnusableInput: it changed, or cannot be read.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unreadable(error, self.where) from error
        try:
            self._check(descriptor)
            yield descriptor
            self._check(descriptor)
        except OSError as error:
            raise unreadable(error, self.where) from error
        finally:
            os.close(descriptor)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        with self.open() as descriptor:
            return os.pread(descriptor, length, offset)

    def blocks(self, offset: int, length: int, block: int = CHUNK_BYTES) -> Iterator[npt.NDArray[np.uint8]]:
        """The bytes from `offset` to `offset + length`, in fresh arrays of `block` bytes (the last may be shorter)."""
        import numpy as np

        with self.open() as descriptor:
            for position in range(offset, offset + length, block):
                data = np.empty(min(block, offset + length - position), np.uint8)
                if read_into(descriptor, data.data, position) != data.size:
                    raise UnusableInput("ended while being read", where=self.where, code="EH103")
                yield data

    def sha256(self) -> str:
        """Hex digest of the whole file."""
        digest = hashlib.sha256()
        buffer = memoryview(bytearray(_HASH_BYTES))
        with self.open() as descriptor:
            position = 0
            while count := read_into(descriptor, buffer, position):
                digest.update(buffer[:count])
                position += count
        return digest.hexdigest()

    def _check(self, descriptor: int) -> None:
        if _identity(os.fstat(descriptor)) != self.identity:
            raise UnusableInput("changed while it was being read", where=self.where, fix="run again when it is at rest")


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def as_bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of an array in C order, without a copy when it is contiguous already."""
    import numpy as np

    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file of a folder that one process works in: whole and durable, or left as it was.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")  # one name, so that a killed run leaves no more than one
    try:
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
