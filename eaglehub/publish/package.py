"""Which files of a folder are published, with the digests that tell them from the Hub's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from eaglehub.card import CARD, CHARTS, REPORTS
from eaglehub.checkpoint import open_checkpoint
from eaglehub.checkpoint.files import SourceFile
from eaglehub.checkpoint.layout import CONFIG, PICKLE_SUFFIXES, SAFETENSORS
from eaglehub.convert import PROVENANCE_FILE, is_companion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from eaglehub.card import Facts
    from eaglehub.checkpoint import Checkpoint

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")
# Files on the Hub that would say something about weights that are no longer there.
_ABOUT_WEIGHTS = (SAFETENSORS, *PICKLE_SUFFIXES, ".index.json", ".py")


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file to publish.

    Attributes:
        name: in the repository.
        source: where its bytes are: a file, or they themselves.
        blob_id: git's, as for a file outside LFS.
    """

    name: str
    source: Path | bytes
    size: int
    sha256: str
    blob_id: str


class LeftOut(NamedTuple):
    """A file that stays behind, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Package:
    """What of a folder is published."""

    files: tuple[PackedFile, ...]
    left_out: tuple[LeftOut, ...]
    weights: tuple[str, ...]

    def hashes(self) -> dict[str, str]:
        """SHA-256 of config.json and the weight files, by name."""
        return {file.name: file.sha256 for file in self.files if file.name in (CONFIG, *self.weights)}


def pack(folder: Path) -> Package:
    """Choose and hash the files of a drafter's folder; the card and its charts are made afresh and not among them.

    Raises:
        UnusableInput: the folder is no drafter's, or a file cannot be read.
    """
    checkpoint = open_checkpoint(folder)
    index = [checkpoint.index_file] if checkpoint.index_file else []
    chosen, left = [CONFIG, *index, *checkpoint.weight_files], []
    for name in checkpoint.other_files:
        if reason := _unwanted(checkpoint, name):
            left.append(LeftOut(name, reason))
        elif name not in (CARD, *CHARTS):
            chosen.append(name)
    left += [LeftOut(f"{path.name}/", "a folder") for path in sorted(folder.iterdir()) if path.is_dir()]
    files = tuple(_packed(folder / name, f"{checkpoint.name}/{name}") for name in sorted(chosen))
    return Package(files, tuple(left), checkpoint.weight_files)


def pack_bytes(name: str, data: bytes) -> PackedFile:
    """A file that is made on the way."""
    git = hashlib.sha1(_git_header(len(data)) + data, usedforsecurity=False)
    return PackedFile(name, data, len(data), hashlib.sha256(data).hexdigest(), git.hexdigest())


def without_foreign(package: Package, facts: Facts) -> Package:
    """The package without reports that are about other bytes."""
    foreign = {name: found.problem for name, found in facts.evidence.items() if not found.report}
    left = [LeftOut(file.name, foreign[file.name]) for file in package.files if file.name in foreign]
    kept = tuple(file for file in package.files if file.name not in foreign)
    return replace(package, files=kept, left_out=(*package.left_out, *left))


def superseded(remote: Iterable[str], package: Iterable[PackedFile]) -> list[str]:
    """Files on the Hub that belong to other weights than the package's and must go with its commit."""
    kept = {file.name for file in package}
    ours = (PROVENANCE_FILE, *REPORTS, *CHARTS)
    return sorted(
        name
        for name in remote
        if name not in kept and "/" not in name and (name.endswith(_ABOUT_WEIGHTS) or name in ours)
    )


def _unwanted(checkpoint: Checkpoint, name: str) -> str:
    if not (is_companion(name) or name.endswith(PICTURES) or name in (PROVENANCE_FILE, *REPORTS)):
        return "not the config, weights, tokenizer, licence, card or reports of a drafter"
    return "a link to a file elsewhere" if checkpoint.leads_outside(name) else ""


def _packed(path: Path, where: str) -> PackedFile:
    source = SourceFile.at(path, where)
    sha256, git = hashlib.sha256(), hashlib.sha1(_git_header(source.size), usedforsecurity=False)
    for block in source.blocks(0, source.size):
        sha256.update(block.data)
        git.update(block.data)
    return PackedFile(path.name, path, source.size, sha256.hexdigest(), git.hexdigest())


def _git_header(size: int) -> bytes:
    return f"blob {size}\0".encode()


def texts(files: Iterable[PackedFile]) -> Iterator[tuple[str, str]]:
    """Name and text of every file that is text."""
    for file in files:
        if not file.name.endswith((SAFETENSORS, *PICKLE_SUFFIXES, *PICTURES, ".model")):
            data = file.source if isinstance(file.source, bytes) else file.source.read_bytes()
            yield file.name, data.decode("utf-8", errors="replace")
