"""A folder of the Hugging Face Hub of which only what is asked for is fetched, by range requests for parts of files."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub import __version__
from eaglehub.checkpoint.files import CHUNK_BYTES, SMALL_FILE_BYTES, SourceFile
from eaglehub.checkpoint.hub_errors import hub_errors
from eaglehub.errors import HubProblem, UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    import numpy.typing as npt

    from eaglehub.checkpoint.folder import File

CLIENT: dict[str, Any] = {"library_name": "eaglehub", "library_version": __version__}
# The header of a drafter's weights is some KB, so one request is nearly always enough for it.
_HEAD_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Listing:
    """What the Hub says of a folder at one commit.

    Attributes:
        repo: the repository's present name.
        revision: the commit.
        subfolder: with slashes, empty for the top.
        sizes: bytes of each file directly in it, by plain name.
        hashes: SHA-256 of those that the Hub keeps as large files.
    """

    repo: str
    revision: str
    subfolder: str
    sizes: Mapping[str, int]
    hashes: Mapping[str, str]

    def inside(self, name: str) -> str:
        """The file's path in the repository."""
        return f"{self.subfolder}/{name}" if self.subfolder else name


class HubFolder:
    """A folder of the Hub, as `Folder` says; made by `open_hub_folder`.

    Args:
        listing: what is in it.
        copy: where its files are on this machine, when they were downloaded.
    """

    def __init__(self, listing: Listing, copy: Path | None) -> None:
        self._listing = listing
        self._copy = copy
        self._texts: dict[str, bytes] = {}
        self.name = f"{listing.repo}/{listing.subfolder}" if listing.subfolder else listing.repo
        self.revision = listing.revision
        self.headers_only = copy is None

    def sizes(self) -> Mapping[str, int]:
        """As in `Folder`."""
        return self._listing.sizes

    def file(self, name: str) -> File:
        """As in `Folder`."""
        if self._copy and (self._copy / name).is_file():
            return SourceFile.at(self._copy / name, f"{self.name}/{name}")
        return HubFile(self, name, self._listing.sizes[name], self._listing.hashes.get(name, ""))

    def read(self, name: str) -> bytes:
        """As in `Folder`.

        Raises:
            UnusableInput: absent or too large.
            HubProblem: the Hub or the network refused or failed.
        """
        where, size = f"{self.name}/{name}", self._listing.sizes.get(name)
        if size is None:
            raise UnusableInput("does not exist", where=where)
        if size > SMALL_FILE_BYTES:
            raise UnusableInput(f"is larger than {SMALL_FILE_BYTES >> 20} MiB", where=where)
        if name not in self._texts:
            self._texts[name] = fetch(self.url(name), where, size)
        return self._texts[name]

    def text(self, name: str) -> str:
        """As in `Folder`; raises what `read` does."""
        return self.read(name).decode("utf-8", errors="replace")

    def path(self, name: str) -> Path:
        """As in `Folder`: downloaded through the cache.

        Raises:
            HubProblem: the Hub or the network refused or failed.
        """
        from huggingface_hub import hf_hub_download

        with hub_errors(f"{self.name}/{name}"):
            inside = self._listing.inside(name)
            return Path(hf_hub_download(self._listing.repo, inside, revision=self.revision, **CLIENT))

    def leads_outside(self, name: str) -> bool:  # noqa: ARG002 - as in `Folder`
        """As in `Folder`."""
        return False

    def shown(self, name: str) -> str:
        """As in `Folder`."""
        return f"{self.name}/{name}"

    def url(self, name: str) -> str:
        """Where the file is, at this commit."""
        from huggingface_hub import hf_hub_url

        return hf_hub_url(self._listing.repo, self._listing.inside(name), revision=self.revision)


class HubFile:
    """A file of the Hub, as `File` says, of which only the parts asked for are fetched."""

    def __init__(self, folder: HubFolder, name: str, size: int, sha256: str) -> None:
        self._folder, self._sha256 = folder, sha256
        self.name, self.where, self.size = name, f"{folder.name}/{name}", size
        self._head = b""

    @property
    def path(self) -> Path:
        """As in `File`: downloaded through the cache."""
        return self._folder.path(self.name)

    def read(self, offset: int, length: int) -> bytes:
        """As in `File`.

        Raises:
            HubProblem: the Hub or the network refused or failed, or sends other bytes than were asked for.
        """
        end = min(offset + length, self.size)
        if not self._head and self.size:
            self._head = fetch(self._folder.url(self.name), self.where, self.size, 0, _HEAD_BYTES)
        if end <= len(self._head):
            return self._head[offset:end]
        return fetch(self._folder.url(self.name), self.where, self.size, offset, end)

    def blocks(self, offset: int, length: int, block: int = CHUNK_BYTES) -> Iterator[npt.NDArray[np.uint8]]:
        """As in `File`; raises what `read` does."""
        import numpy as np

        for position in range(offset, offset + length, block):
            yield np.frombuffer(bytearray(self.read(position, min(block, offset + length - position))), np.uint8)

    def sha256(self) -> str:
        """As in `File`: what the Hub says, which knows it of every large file."""
        return self._sha256 or SourceFile.at(self.path, self.where).sha256()


def fetch(url: str, where: str, size: int, start: int = 0, stop: int | None = None) -> bytes:
    """The bytes from `start` to `stop` of a file on the Hub; the whole of it in one answer where `stop` is beyond it.

    Args:
        url: where it is.
        where: how messages call it.
        size: bytes of the whole file, as the Hub lists it.
        start: where the part that is wanted begins.
        stop: where it ends; None for the file's end.

    Raises:
        HubProblem: the Hub or the network refused or failed, does not serve parts, or the file has another size.
    """
    from huggingface_hub import constants, get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]

    whole = start == 0 and (stop is None or stop >= size)
    length = (size if whole or stop is None else stop) - start
    part = {} if whole else {"Range": f"bytes={start}-{start + length - 1}"}
    with hub_errors(where), ExitStack() as stack:
        headers = {**build_hf_headers(**CLIENT), "Accept-Encoding": "identity", **part}
        timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
        response = stack.enter_context(get_session().stream("GET", url, headers=headers, timeout=timeout))
        hf_raise_for_status(response)
        if not whole:
            _check_part(response, where, start, length, size)
        data = _take(response, length + 1)
    if len(data) != length:
        raise HubProblem("the Hub sends another number of bytes than it announced", where=where, fix="try again")
    return data


def _check_part(response: Any, where: str, start: int, length: int, size: int) -> None:
    """A server that sends the whole file, or a part of another one, is found out before anything is read of it."""
    if response.status_code != 206:
        raise HubProblem("the Hub does not send parts of files", where=where, fix="--values downloads it whole")
    expected = f"bytes {start}-{start + length - 1}/{size}"
    if response.headers.get("Content-Range") != expected:
        raise HubProblem("the Hub sends another part than was asked for, or of another file", where=where)


def _take(response: Any, limit: int) -> bytes:
    """No more of the answer than was asked for, however long it is."""
    parts: list[bytes] = []
    for part in response.iter_bytes():
        parts.append(part)
        limit -= len(part)
        if limit <= 0:
            break
    return b"".join(parts)
