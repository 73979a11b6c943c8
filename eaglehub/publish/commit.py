"""One commit, exactly once: after an answer that never came, the Hub is asked what it holds before a repetition.

`parent_commit` makes the Hub refuse a commit on anything but the head that was looked at, so a repeated request can
never make a second one, and nobody's change is overwritten.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from eaglehub.checkpoint.hub_errors import status_of
from eaglehub.errors import HubProblem, UnusableInput
from eaglehub.publish.remote import MAIN, asking, files_at, look

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    from eaglehub.publish.package import PackedFile
    from eaglehub.publish.remote import Remote, RemoteFile

# Seconds before each repetition of a commit that was not made.
PAUSES = (1.0, 4.0)
_BUSY = (408, 429, 500, 502, 503, 504)
_LATEST_PULLS = 20
_UNKNOWN = "whether the commit was made is not known, and another run finds out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a commit changes.

    Attributes:
        parent: the commit that was looked at.
        branch: where it goes, or what its pull request is against.
        files: everything that is to stand there.
        sent: those of them that do not stand there yet.
        removed: files that are to go.
    """

    repo: str
    parent: str
    branch: str
    files: Sequence[PackedFile]
    sent: Sequence[PackedFile]
    removed: Sequence[str]
    message: str
    create_pr: bool

    def made_in(self, there: Mapping[str, RemoteFile]) -> bool:
        """Whether these files are what the commit was to make of them."""
        same = all(file.name in there and there[file.name].holds(file) for file in self.files)
        return same and not any(name in there for name in self.removed)


class Committed(NamedTuple):
    """A commit on the Hub, and the ref of its pull request where it has one."""

    oid: str
    pull: str = ""


def send(api: HfApi, change: Change, before: Remote) -> Committed:
    """Upload the files and commit them; `before` is the repository as it was looked at.

    Raises:
        HubProblem: it was not committed, or that cannot be told; never a half of it.
        UnusableInput: a file changed since it was checked.
    """
    from huggingface_hub import CommitOperationDelete

    operations: list[CommitOperationAdd | CommitOperationDelete] = [*_upload(api, change)]
    operations += map(CommitOperationDelete, change.removed)
    for pause in (*PAUSES, None):
        made = _commit(api, change, operations)
        if isinstance(made, Committed):
            return made
        # Whatever it was, the commit may have been made.
        if found := find(api, change, before):
            return found
        if pause is None or change.create_pr or not _may_pass(made):
            with asking(change.repo, "nothing was committed"):
                raise made
        time.sleep(pause)
    raise AssertionError("unreachable")


def find(api: HfApi, change: Change, before: Remote) -> Committed | None:
    """The commit, if it was made although nobody was told; None if the branch is as it was.

    Raises:
        HubProblem: somebody else's commit came first, or it cannot be told.
    """
    if change.create_pr:
        return find_pull(api, change, before.pulls)
    with asking(change.repo, _UNKNOWN):
        since = []
        for commit in api.list_repo_commits(change.repo, revision=change.branch):
            if commit.commit_id == change.parent:
                break
            since.append(commit.commit_id)
        if not since:
            return None
        if change.made_in(files_at(api, change.repo, since[-1])):
            return Committed(since[-1])
    raise HubProblem(
        f"somebody else has changed it meanwhile ({since[-1][:12]}), so nothing was committed",
        where=change.repo,
        fix="look at that change, then publish again",
    )


def find_pull(api: HfApi, change: Change, known: Mapping[str, str] | None = None) -> Committed | None:
    """An open pull request that makes just this change; among those that are not `known`, where that is given."""
    pulls = look(api, change.repo, MAIN).pulls
    numbers = sorted((int(ref.rpartition("/")[2]) for ref in pulls if ref not in (known or {})), reverse=True)
    with asking(change.repo, _UNKNOWN):
        for number in numbers[:_LATEST_PULLS]:
            ref = f"refs/pr/{number}"
            if change.made_in(files_at(api, change.repo, pulls[ref])):
                status = api.get_discussion_details(change.repo, number).status
                if status in ("open", "draft"):
                    return Committed(pulls[ref], ref)
    return None


def _upload(api: HfApi, change: Change) -> list[CommitOperationAdd]:
    """Send what goes to LFS or Xet; a commit may then point to it."""
    from huggingface_hub import CommitOperationAdd

    additions = [CommitOperationAdd(file.name, file.source) for file in change.sent]
    with asking(change.repo, "nothing was committed"):
        api.preupload_lfs_files(
            change.repo, additions, revision=change.branch, create_pr=change.create_pr, free_memory=False
        )
    for addition, file in zip(additions, change.sent, strict=True):
        if addition.upload_info.sha256.hex() != file.sha256:
            raise UnusableInput("changed since it was checked", where=file.name, fix="run again when it is at rest")
    return additions


def _commit(
    api: HfApi, change: Change, operations: Sequence[CommitOperationAdd | CommitOperationDelete]
) -> Committed | Exception:
    """The commit, or why there is no answer about it."""
    try:
        made = api.create_commit(
            change.repo,
            operations,
            commit_message=change.message,
            revision=None if change.create_pr else change.branch,
            create_pr=change.create_pr,
            parent_commit=change.parent,
        )
    except Exception as error:  # noqa: BLE001 - judged by the caller
        return error
    return Committed(made.oid, str(made.pr_revision) if change.create_pr else "")


def _may_pass(error: Exception) -> bool:
    """Whether it makes sense to ask again: a broken connection, or a Hub that is busy."""
    status = status_of(error)
    return status is None or status in _BUSY
