"""Digests of what a step depends on, remembered so that a large file is read once."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.files import replace_file
from eaglehub.recipe.verbs import VERBS

if TYPE_CHECKING:
    from collections.abc import Iterable

# Reports and cards that commands leave beside a drafter are not the drafter.
_BESIDE = (".md", ".png", ".svg", ".html")
_BESIDE_NAMES = {verb.beside for verb in VERBS.values()}
# A target's weights are known by size and time: reading hundreds of gigabytes again would take longer than the steps.
_BY_CONTENT = 64 << 20


class Digests:
    """SHA-256 of files and folders; `save` keeps what was computed for the next run.

    Args:
        memory: the file in which digests are kept.
    """

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._known = {
            path: seen for path, seen in json_or_empty(memory).items() if isinstance(seen, list) and len(seen) == 4
        }

    def save(self) -> None:
        """Write the memory, whole or not at all."""
        write_json(self._memory, self._known)

    def drafter(self, folder: Path) -> str:
        """Of everything in a drafter's folder or file, but not of the reports beside it."""
        files = (path for path in _files(folder) if path.suffix not in _BESIDE and path.name not in _BESIDE_NAMES)
        return _combined((path.relative_to(folder).as_posix(), self._content(path)) for path in files)

    def path(self, path: Path) -> str:
        """Of any other file or folder; large files in it count by their size and time."""
        return _combined((entry.relative_to(path).as_posix(), self._near(entry)) for entry in _files(path))

    def _near(self, path: Path) -> str:
        status = path.stat()
        large = status.st_size > _BY_CONTENT
        return f"{status.st_size} {status.st_mtime_ns}" if large else self._content(path)

    def _content(self, path: Path) -> str:
        status = path.stat()
        seen = [status.st_size, status.st_mtime_ns, status.st_ino]
        known = self._known.get(str(path))
        if known is None or known[:3] != seen:
            with path.open("rb") as stream:
                known = [*seen, hashlib.file_digest(stream, "sha256").hexdigest()]
            self._known[str(path)] = known
        return str(known[3])


def key_of(parts: Any) -> str:
    """Digest of anything that JSON can say."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def json_or_empty(path: Path) -> dict[str, Any]:
    """What `write_json` wrote; empty where it is missing or damaged, since the work can be done again."""
    try:
        value = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def write_json(path: Path, value: Any) -> None:
    """Replace a file whole."""
    replace_file(path, json.dumps(value, indent=1, sort_keys=True).encode())


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = (Path(folder, name) for folder, _, names in os.walk(path) for name in names if not name.startswith("."))
    return sorted(path for path in found if path.is_file())  # not a pipe, which would be waited for, nor a dead link


def _combined(entries: Iterable[tuple[str, str]]) -> str:
    return key_of(list(entries))
