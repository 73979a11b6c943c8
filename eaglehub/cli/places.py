"""What the user's DRAFTER or --target names: a folder of this machine or, where there is none, one on the Hub."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from eaglehub.checkpoint.folder import hub_snapshot
from eaglehub.checkpoint.hub import SCHEME, TARGET_FACTS, HubName, download, hub_name, open_hub_folder
from eaglehub.cli.output import quiet, say
from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from eaglehub.checkpoint.folder import Folder


def readable(text: str, *, values: bool = False) -> Path | Folder:
    """For commands that read headers and small tensors: of a folder on the Hub no more is fetched.

    Args:
        text: as the user gave it.
        values: whether all weights will be read, so that they are better downloaded.

    Raises:
        HubProblem: the Hub or the network refused or failed.
        UsageProblem: it names nothing.
    """
    place = _find(text)
    if isinstance(place, Path):
        return place
    folder = open_hub_folder(place, values=values, progress=_shows_progress())
    _say_taken(place, folder.name, folder.revision)
    return folder


def fetched(text: str) -> Path:
    """For commands that need the files themselves: a folder on the Hub is downloaded through the client's cache.

    Raises:
        HubProblem: the Hub or the network refused or failed.
        UsageProblem: it names nothing.
    """
    return _fetched(text, ())


def target_facts(text: str) -> Path:
    """For commands that only look at a target's config; as `fetched`, without weights."""
    return _fetched(text, TARGET_FACTS)


def existing_folder(path: Path) -> Path:
    """The path, if it is a folder's.

    Raises:
        UnusableInput: it is not.
    """
    if not path.is_dir():
        raise UnusableInput("is not a folder" if path.exists() else "does not exist", where=str(path))
    return path


def is_cached(folder: Path) -> bool:
    """Whether the folder is the Hub's copy in the cache, where nothing may be added."""
    return hub_snapshot(folder) is not None


def _fetched(text: str, only: tuple[str, ...]) -> Path:
    place = _find(text)
    if isinstance(place, Path):
        return place
    folder = download(place, only, progress=_shows_progress())
    _say_taken(place, *(hub_snapshot(folder) or (str(place), None)))
    return folder


def _find(text: str) -> Path | HubName:
    """A path of this machine wins; what both could be is told, so that nobody takes the one for the other."""
    name = hub_name(text)
    if name is None:
        return Path(text)
    if text.startswith(SCHEME):
        return name
    if Path(text).exists():
        say(f"{text} is taken from this machine; {SCHEME}{text} would be the Hub's")
        return Path(text)
    say(f"there is no {text} here: asking the Hub")
    return name


def _say_taken(asked: HubName, name: str, revision: str | None) -> None:
    if not f"{name}/".startswith(f"{asked.repo}/"):
        say(f"{asked.repo} was renamed: it is {name} now")
    say(f"taking {name} from the Hub at {revision}")


def _shows_progress() -> bool:
    return sys.stderr.isatty() and not quiet()
