"""A folder that appears whole or not at all, whatever kills the process.

Contents are gathered in a hidden sibling, `.NAME.eaglehub-TOKEN`, held by a lock that dies with its process. A normal
end renames it into place; replacing an existing folder moves that aside first, as `.NAME.eaglehub-TOKEN.old`. What a
killed run left tells by itself how far it came, and the next run on the same destination settles it:

    stage       old         the run died                        settled by
    present     absent      before the swap                     removing the stage
    present     present     between the two renames             moving the old folder back
    absent      present     after the swap                      removing the old folder, if the new one is there
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from eaglehub.checkpoint.layout import CONFIG
from eaglehub.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OLD = ".old"


@contextmanager
def staged_folder(destination: Path, *, force: bool = False, protect: Sequence[Path] = ()) -> Iterator[Path]:
    """A folder to fill; it becomes `destination` when the block ends normally and vanishes otherwise.

    Args:
        destination: must not exist or be empty; its parent must exist.
        force: replace an existing folder that holds a config.json.
        protect: folders that must survive, e.g. the source.

    Raises:
        UsageProblem: the destination may not be replaced, or not without force.
        OSError: the file system refused.
    """
    destination = _absolute(destination)
    _check_parent(destination)
    stage = destination.parent / f"{_prefix(destination)}{secrets.token_hex(4)}"
    with ExitStack() as lock:
        try:
            with _locked(destination.parent):
                _settle_dead_runs(destination)
                _check_replaceable(destination, force=force, protect=protect)
                stage.mkdir()
                lock.callback(os.close, _lock_now(stage))
            yield stage
            with _locked(destination.parent):
                _check_replaceable(destination, force=force, protect=protect)
                _swap_in(stage, destination)
        finally:
            _settle(stage, destination)


def check_destination(destination: Path, *, force: bool, protect: Sequence[Path] = ()) -> None:
    """Refuse at once what `staged_folder` would refuse after a long run.

    Raises:
        UsageProblem: the destination may not be replaced, or not without force.
    """
    _check_parent(_absolute(destination))
    _check_replaceable(_absolute(destination), force=force, protect=protect)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow a link at the end


def _check_parent(destination: Path) -> None:
    if not destination.parent.is_dir():
        raise UsageProblem("the folder to write into does not exist", where=str(destination.parent), fix="create it")


def _check_replaceable(destination: Path, *, force: bool, protect: Sequence[Path]) -> None:
    where = destination.name
    if destination.is_symlink():
        raise UsageProblem("the output is a link", where=where, fix="give the folder it points to")
    if not destination.exists():
        return
    if not destination.is_dir():
        raise UsageProblem("the output exists and is not a folder", where=where)
    for kept in (Path.cwd(), *protect):
        if kept.resolve().is_relative_to(destination.resolve()):
            raise UsageProblem("the output is, or contains, the source or the current folder", where=where)
    if not any(destination.iterdir()):
        return
    if not force:
        raise UsageProblem("the output folder is not empty", where=where, fix="--force replaces it")
    if not (destination / CONFIG).is_file():
        raise UsageProblem("the output is no drafter (no config.json in it) and is not replaced", where=where)


def _swap_in(stage: Path, destination: Path) -> None:
    if destination.exists():
        destination.rename(_old(stage))
    stage.rename(destination)
    sync_folder(destination.parent)


def _settle_dead_runs(destination: Path) -> None:
    pattern = re.compile(re.escape(_prefix(destination)) + r"[0-9a-f]{8}")
    names = {entry.name.removesuffix(_OLD) for entry in destination.parent.iterdir()}
    for stage in sorted(destination.parent / name for name in names if pattern.fullmatch(name)):
        if not stage.exists() or _is_dead(stage):
            _settle(stage, destination)


def _settle(stage: Path, destination: Path) -> None:
    """Leave nothing of a run that is over, and never lose a folder that was moved aside."""
    old = _old(stage)
    if old.exists() and (stage.exists() or not destination.exists()):
        with suppress(OSError):
            destination.rmdir()
        if destination.exists():
            raise UsageProblem(
                f"a run was killed while it replaced this folder, whose former contents are in {old.name}",
                where=destination.name,
                fix="move one of the two away",
            )
        old.rename(destination)
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(stage, ignore_errors=True)


def _prefix(destination: Path) -> str:
    return f".{destination.name}.eaglehub-"


def _old(stage: Path) -> Path:
    return stage.with_name(stage.name + _OLD)


def _lock_now(folder: Path) -> int:
    """Hold `folder` until the descriptor is closed or the process dies."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _is_dead(stage: Path) -> bool:
    try:
        os.close(_lock_now(stage))
    except OSError:
        return False
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other runs from looking at half-done renames; held only for moments."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
