"""What stands on the Hub: a repository's head, its files and refs, and who is asking."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.hub_errors import hub_errors, status_of
from eaglehub.checkpoint.hub_folder import CLIENT
from eaglehub.errors import HubProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from huggingface_hub import HfApi

    from eaglehub.publish.package import PackedFile

MAIN = "main"
# The CI's trusted publishing: the token is for this repository, and belongs to nobody.
_PUBLISHER = "HF_OIDC_RESOURCE"
_WRITERS = ("admin", "write", "contributor")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file as the Hub describes it.

    Attributes:
        blob_id: git's; of the pointer, for a file in LFS.
        sha256: of a file in LFS, else empty.
    """

    size: int
    blob_id: str
    sha256: str

    def holds(self, file: PackedFile) -> bool:
        """Whether it is the same content."""
        same = self.sha256 == file.sha256 if self.sha256 else self.blob_id == file.blob_id
        return same and self.size == file.size


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository at one moment.

    Attributes:
        head: commit of the branch; empty where the repository or the branch is not there yet.
        start: commit that a new branch starts from; empty without a repository.
        private: None without a repository.
        files: at `head`, else at `start`.
        tags: tag to commit.
        pulls: ref of a pull request to its commit.
    """

    head: str = ""
    start: str = ""
    private: bool | None = None
    files: Mapping[str, RemoteFile] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    pulls: Mapping[str, str] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        """Whether there is a repository."""
        return self.private is not None


def client(*, bars: bool) -> HfApi:
    """The Hub's client, with its progress bars or without; its remarks are left out."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    if not bars:
        disable_progress_bars()
    return HfApi(**CLIENT)


@contextmanager
def asking(repo: str, state: str) -> Iterator[None]:
    """Explain what the client raises; `state` says what is so on the Hub when that happens.

    Raises:
        HubProblem: the Hub or the network refused or failed.
    """
    try:
        with hub_errors(repo):
            yield
    except HubProblem as problem:
        raise HubProblem(f"{problem.what}; {state}", where=problem.where, fix=problem.fix) from None


def look(api: HfApi, repo: str, branch: str) -> Remote:
    """The repository as it is now.

    Raises:
        HubProblem: it cannot be told, or the repository has another name now.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    with hub_errors(repo):
        try:
            info = api.model_info(repo)
        except RepositoryNotFoundError:
            return Remote()
        if info.id != repo:
            raise HubProblem(f"has been renamed to {info.id}", where=repo, fix="publish there")
        refs = api.list_repo_refs(repo, include_pull_requests=True)
        pulls = {pull.ref: pull.target_commit for pull in refs.pull_requests or ()}
        heads = pulls | {each.name: each.target_commit for each in refs.branches}
        head = heads.get(branch, "")
        return Remote(
            head=head,
            start=heads[MAIN],
            private=bool(info.private),
            files=files_at(api, repo, head or heads[MAIN]),
            tags={tag.name: tag.target_commit for tag in refs.tags},
            pulls=pulls,
        )


def files_at(api: HfApi, repo: str, commit: str) -> dict[str, RemoteFile]:
    """Every file of a commit; called where somebody explains the client's errors."""
    from huggingface_hub.hf_api import RepoFile

    entries = api.list_repo_tree(repo, recursive=True, revision=commit)
    return {entry.path: _described(entry) for entry in entries if isinstance(entry, RepoFile)}


def describe(api: HfApi, repo: str, commit: str, names: Iterable[str]) -> dict[str, RemoteFile]:
    """These files of a commit; called where somebody explains the client's errors."""
    from huggingface_hub.hf_api import RepoFile

    entries = api.get_paths_info(repo, list(names), revision=commit)
    return {entry.path: _described(entry) for entry in entries if isinstance(entry, RepoFile)}


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is asking.

    Attributes:
        name: for messages.
        namespaces: those under which repositories can be made.
    """

    name: str
    namespaces: tuple[str, ...] = ()


def identify(api: HfApi) -> Identity:
    """The account that the token belongs to, or the repository that trusts this CI job.

    Raises:
        HubProblem: nobody is logged in, or the token may not write.
    """
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    if publisher := os.environ.get(_PUBLISHER):
        return Identity(f"the trusted publisher of {publisher}")
    with hub_errors("the Hub"):
        try:
            account = api.whoami()
        except LocalTokenNotFoundError:
            raise HubProblem("nobody is logged in", fix="run: hf auth login, or set HF_TOKEN") from None
        except HfHubHTTPError as error:
            if status_of(error) == 401:
                raise HubProblem("the Hub does not know your token", fix="run: hf auth login") from None
            raise
    if account.get("auth", {}).get("accessToken", {}).get("role") == "read":
        raise HubProblem("the token may only read", fix="log in with one that may write")
    writable = [str(org["name"]) for org in account.get("orgs", ()) if org.get("roleInOrg", "write") in _WRITERS]
    return Identity(str(account["name"]), (str(account["name"]), *writable))


def check_writable(api: HfApi, repo: str, remote: Remote, who: Identity) -> None:
    """Whether they may write to the repository, or make it where there is none.

    Raises:
        HubProblem: they may not.
    """
    if remote.exists:
        with hub_errors(repo):
            api.auth_check(repo, write=True)
    elif repo.partition("/")[0] not in who.namespaces:
        what = f"does not exist, and {who.name} may not make it"
        raise HubProblem(what, where=repo, fix="log in as somebody who may, or choose another name")


def _described(entry: Any) -> RemoteFile:
    return RemoteFile(entry.size, entry.blob_id, entry.lfs.sha256 if entry.lfs else "")
