"""What the Hub holds after a commit, compared with what was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.checkpoint import open_checkpoint
from eaglehub.checkpoint.hub import HubName, open_hub_folder
from eaglehub.errors import HubProblem, UnusableInput
from eaglehub.publish.remote import asking, describe

if TYPE_CHECKING:
    from pathlib import Path

    from huggingface_hub import HfApi

    from eaglehub.publish.commit import Change


def confirm(api: HfApi, change: Change, commit: str, folder: Path) -> None:
    """Compare size and digest of every file, and the weights' header as the Hub serves it, with the drafter's `folder`.

    Raises:
        HubProblem: the Hub holds something else, or cannot be asked.
    """
    names = [*[file.name for file in change.files], *change.removed]
    with asking(change.repo, f"the files were committed as {commit}, but not looked at"):
        there = describe(api, change.repo, commit, names)
        served = _served_tensors(change.repo, commit)
    wrong = [file.name for file in change.files if file.name not in there or not there[file.name].holds(file)]
    wrong += [name for name in change.removed if name in there]
    wrong += [] if served == open_checkpoint(folder).tensors else ["the header of the weights"]
    if wrong:
        what = f"commit {commit} does not hold what was sent: {', '.join(wrong)}"
        raise HubProblem(what, where=change.repo, fix="publish again")


def _served_tensors(repo: str, commit: str) -> object:
    """What the header declares that the Hub serves; None where it cannot be read."""
    try:
        return open_checkpoint(open_hub_folder(HubName(repo, commit))).tensors
    except UnusableInput:
        return None
