"""What the loopback Hub keeps: repositories of commits of files, in memory."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass, field
from functools import cached_property

LFS_SUFFIXES = (".safetensors", ".bin", ".pt", ".png", ".model")
LFS_BYTES = 10 << 20
ATTRIBUTES = "".join(f"*{suffix} filter=lfs diff=lfs merge=lfs -text\n" for suffix in LFS_SUFFIXES).encode()
_BLOCK = 1 << 20
_numbers = itertools.count()


class Refusal(Exception):
    """What the Hub answers in place of a result."""

    def __init__(self, status: int, message: str, code: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.headers = {**(headers or {}), "X-Error-Message": message, **({"X-Error-Code": code} if code else {})}


@dataclass(frozen=True)
class Blob:
    """A file's content: `data`, followed by zeros up to `size`, so that a large file needs no memory."""

    data: bytes
    size: int = -1
    lfs: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", max(self.size, len(self.data)))

    def read(self, start: int, stop: int) -> bytes:
        stop = min(stop, self.size)
        return self.data[start:stop].ljust(max(0, stop - start), b"\0")

    @cached_property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for start in range(0, self.size, _BLOCK):
            digest.update(self.read(start, start + _BLOCK))
        return digest.hexdigest()

    @property
    def pointer(self) -> bytes:
        """What git holds of a file in LFS."""
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {self.size}\n".encode()

    @cached_property
    def oid(self) -> str:
        """Git's id: of the pointer for a file in LFS."""
        return git_id(self.pointer if self.lfs else self.data)


def git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def goes_to_lfs(path: str, size: int) -> bool:
    return path.endswith(LFS_SUFFIXES) or size > LFS_BYTES


@dataclass(frozen=True)
class Commit:
    oid: str
    parent: str | None
    files: dict[str, Blob]
    title: str
    description: str = ""


@dataclass
class Pull:
    """A pull request; its commits are at refs/pr/N."""

    number: int
    title: str
    description: str
    author: str
    base: str
    status: str = "draft"


@dataclass
class Repo:
    name: str
    private: bool = False
    gated: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, Pull] = field(default_factory=dict)
    tag_messages: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commit("refs/heads/main", {".gitattributes": Blob(ATTRIBUTES)}, "initial commit")

    def head(self, revision: str = "main") -> Commit:
        """The commit of a branch, tag, full ref or (shortened) commit id."""
        for ref in (f"refs/heads/{revision}", f"refs/tags/{revision}", revision):
            if ref in self.refs:
                return self.commits[self.refs[ref]]
        found = [oid for oid in self.commits if re.fullmatch("[0-9a-f]{5,40}", revision) and oid.startswith(revision)]
        if len(found) != 1:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self.commits[found[0]]

    def files(self, revision: str = "main") -> dict[str, Blob]:
        return self.head(revision).files

    def branch_ref(self, revision: str) -> str:
        """The ref that a commit to `revision` moves."""
        ref = revision if revision.startswith("refs/") else f"refs/heads/{revision}"
        if ref not in self.refs:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return ref

    def commit(
        self, ref: str, changes: dict[str, Blob | None], title: str, description: str = "", base: str = ""
    ) -> Commit:
        """Move a ref on by one commit; None deletes a file.

        Args:
            base: ref that it starts from when it is new.
        """
        parent = self.refs.get(ref) or self.refs.get(base)
        files = {**(self.commits[parent].files if parent else {}), **changes}
        kept = {path: blob for path, blob in sorted(files.items()) if blob is not None}
        # Two commits are never the same, however alike.
        text = repr((next(_numbers), self.name, parent, title, [(path, blob.oid) for path, blob in kept.items()]))
        commit = Commit(hashlib.sha1(text.encode()).hexdigest(), parent, kept, title, description)
        self.commits[commit.oid] = commit
        self.refs[ref] = commit.oid
        return commit

    def history(self, revision: str) -> list[Commit]:
        """From the newest back."""
        commits, oid = [], self.head(revision).oid
        while oid:
            commits.append(self.commits[oid])
            oid = commits[-1].parent or ""
        return commits

    def open_pull(self, title: str, description: str, author: str, base: str) -> Pull:
        number = len(self.pulls) + 1
        self.pulls[number] = Pull(number, title, description, author, base)
        self.refs[f"refs/pr/{number}"] = self.head(base).oid
        return self.pulls[number]
