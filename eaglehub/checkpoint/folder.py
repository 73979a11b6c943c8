"""Where a checkpoint's files are: in a `Folder`, which is one of this machine or, in `hub_folder.py`, of the Hub."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from eaglehub.checkpoint.files import CHUNK_BYTES, SourceFile, read_small_file, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    import numpy.typing as npt

_SNAPSHOT = re.compile(r"models--(?P<repo>[^/]+)/snapshots/(?P<revision>[0-9a-f]{40})(?P<subfolder>/.+)?$")


class File(Protocol):
    """A file that can be read in parts.

    Attributes:
        name: plain file name.
        where: how messages call it.
        size: bytes.
    """

    @property
    def name(self) -> str: ...
    @property
    def where(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def path(self) -> Path:
        """The whole file on this machine."""

    def read(self, offset: int, length: int) -> bytes:
        """The bytes from `offset` on, `length` of them or up to the file's end."""

    def blocks(self, offset: int, length: int, block: int = CHUNK_BYTES) -> Iterator[npt.NDArray[np.uint8]]:
        """The bytes from `offset` to `offset + length`, in fresh arrays of `block` bytes (the last may be shorter)."""

    def sha256(self) -> str:
        """Hex digest of the whole file."""


class Folder(Protocol):
    """A folder's regular files, given by plain name.

    Attributes:
        name: how messages and reports call it, never a path of this machine: the base name, or `org/repo` on the Hub.
        revision: commit on the Hub; None where there is none.
        headers_only: whether large tensors are too far away to be looked into.
    """

    @property
    def name(self) -> str: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def headers_only(self) -> bool: ...

    def sizes(self) -> Mapping[str, int]:
        """Bytes of each file, sorted by name."""

    def file(self, name: str) -> File:
        """One file, to be read in parts."""

    def read(self, name: str) -> bytes:
        """The whole of a small file."""

    def text(self, name: str) -> str:
        """The whole of a small text file; what is not UTF-8 is replaced."""

    def path(self, name: str) -> Path:
        """The whole file on this machine."""

    def leads_outside(self, name: str) -> bool:
        """Whether it is a link to a file that is none of this folder's."""

    def shown(self, name: str) -> str:
        """The file as reports name it, with slashes."""


class LocalFolder:
    """A folder of this machine; one in the Hugging Face cache goes by its repository's name.

    Args:
        path: where it is; it need not exist.
    """

    headers_only = False
    name: str
    revision: str | None

    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links and change the name
        self.name, self.revision = hub_snapshot(self._path) or (self._path.name, None)

    def sizes(self) -> Mapping[str, int]:
        """As in `Folder`.

        Raises:
            UnusableInput: it cannot be listed.
        """
        try:
            return {entry.name: entry.stat().st_size for entry in sorted(self._path.iterdir()) if entry.is_file()}
        except OSError as error:
            raise unreadable(error, self.name) from error

    def file(self, name: str) -> SourceFile:
        """As in `Folder`.

        Raises:
            UnusableInput: it cannot be examined.
        """
        return SourceFile.at(self.path(name), f"{self.name}/{name}")

    def read(self, name: str) -> bytes:
        """As in `Folder`.

        Raises:
            UnusableInput: absent, not a regular file, too large or unreadable.
        """
        return read_small_file(self.path(name), f"{self.name}/{name}")

    def text(self, name: str) -> str:
        """As in `Folder`.

        Raises:
            OSError: it cannot be read.
        """
        return self.path(name).read_text(encoding="utf-8", errors="replace")

    def path(self, name: str) -> Path:
        """As in `Folder`."""
        return self._path / name

    def leads_outside(self, name: str) -> bool:
        """As in `Folder`."""
        return leads_outside(self.path(name))

    def shown(self, name: str) -> str:
        """As in `Folder`: relative to the working directory, below the folder's own name where it lies elsewhere."""
        path, here = self.path(name), Path.cwd()
        return path.relative_to(here).as_posix() if path.is_relative_to(here) else f"{self.name}/{name}"


def hub_snapshot(folder: Path) -> tuple[str, str] | None:
    """Repository (with a folder in it) and commit, when the folder is a snapshot in the Hugging Face cache."""
    match = _SNAPSHOT.search(folder.absolute().as_posix())
    if match is None:
        return None
    return match["repo"].replace("--", "/", 1) + (match["subfolder"] or ""), match["revision"]


def leads_outside(path: Path) -> bool:
    """Whether it is a link to elsewhere than where the Hugging Face cache keeps a snapshot's files."""
    return (
        path.is_symlink() and path.resolve().parent != path.parent.resolve() and path.resolve().parent.name != "blobs"
    )
