"""Checkpoints on the Hugging Face Hub: what a name means, headers by range request, whole files through the cache.

The client is imported when a name of the Hub is first opened, never for a folder of this machine.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.folder import LocalFolder
from eaglehub.checkpoint.hub_errors import hub_errors
from eaglehub.checkpoint.hub_folder import CLIENT, HubFolder, Listing
from eaglehub.checkpoint.layout import CONFIG, NOT_WEIGHTS, PICKLE_SUFFIXES, SAFETENSORS
from eaglehub.errors import HubProblem, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eaglehub.checkpoint.folder import Folder

SCHEME = "hf://"
_NAME = r"[A-Za-z0-9](?:[\w.-]{0,94}[A-Za-z0-9_])?"
_SHORT = re.compile(rf"(?P<repo>{_NAME}/{_NAME})(?:@(?P<revision>[^@\s]{{1,150}}))?", re.ASCII)
_LONG = re.compile(
    rf"(?:models/)?(?P<repo>{_NAME}/{_NAME})(?:@(?P<revision>refs/pr/\d+|[^@/\s]+))?(?:/(?P<subfolder>[^@\s]+?))?/?",
    re.ASCII,
)
# Endings of files, which no repository's name has.
_FILES = (".json", SAFETENSORS, *PICKLE_SUFFIXES)
_TEXTS = (".json", ".jinja", ".txt", ".md", ".model", ".tiktoken")
_LEGAL = ("LICENSE", "LICENCE", "NOTICE", "USE_POLICY")
# What tells of a target how it is built and spoken to.
TARGET_FACTS = (CONFIG, "generation_config.json", "tokenizer_config.json", "chat_template.jinja")


@dataclass(frozen=True, slots=True)
class HubName:
    """A folder on the Hub as somebody wrote it.

    Attributes:
        repo: `org/repo`.
        revision: branch, tag, commit or `refs/pr/N`; None for the default branch.
        subfolder: with slashes, empty for the top.
    """

    repo: str
    revision: str | None = None
    subfolder: str = ""

    def __str__(self) -> str:
        at = f"@{self.revision}" if self.revision else ""
        return f"{self.repo}{at}{f'/{self.subfolder}' if self.subfolder else ''}"


def hub_name(text: str) -> HubName | None:
    """What `org/repo`, `org/repo@revision` or `hf://org/repo[@revision][/subfolder]` names; None for anything else.

    Raises:
        UsageProblem: it starts with `hf://` and is none of these.
    """
    if text.startswith(SCHEME):
        match = _LONG.fullmatch(text.removeprefix(SCHEME))
        if match is None:
            raise UsageProblem("names no model repository", where=text, fix="hf://ORG/REPO[@REVISION][/FOLDER]")
        return HubName(match["repo"], match["revision"], match["subfolder"] or "")
    match = _SHORT.fullmatch(text)
    return HubName(match["repo"], match["revision"]) if match and not match["repo"].endswith(_FILES) else None


def open_hub_folder(name: HubName, *, values: bool = False, progress: bool = False) -> Folder:
    """A folder of the Hub of which only what is asked for is fetched; offline, its copy in the cache.

    Args:
        name: where it is.
        values: whether weights will be read as well: they are downloaded.
        progress: whether to show bars while they are.

    Raises:
        HubProblem: the Hub or the network refused or failed.
        UsageProblem: there is no such folder in the repository.
    """
    _prepare_client(progress)
    if _offline():
        return LocalFolder(download(name))
    return HubFolder(_list(name), download(name, progress=progress) if values else None)


def download(name: HubName, only: Sequence[str] = (), *, progress: bool = False) -> Path:
    """A folder of the Hub in the client's cache: config, weights and what goes with them, never code.

    Args:
        name: where it is.
        only: plain names, when fewer files are wanted; those that are not there are left out.
        progress: whether to show bars.

    Returns:
        The folder; `hub_snapshot` tells repository and commit.

    Raises:
        HubProblem: the Hub or the network refused or failed, or it is offline and not in the cache.
        UsageProblem: there is no such folder in the repository.
    """
    from huggingface_hub import snapshot_download

    _prepare_client(progress)
    listing = _cached(name) if _offline() else _list(name)
    wanted = [file for file in listing.sizes if (file in only if only else _goes_along(file, listing.sizes))]
    with hub_errors(str(name)):
        folder = snapshot_download(
            listing.repo,
            revision=name.revision,  # not the commit: the cache is to know what the branch was
            allow_patterns=[glob.escape(listing.inside(file)) for file in wanted],
            **CLIENT,
        )
    # The client takes an older copy where the Hub no longer answers.
    if not _offline() and Path(folder).name != listing.revision:
        raise HubProblem("changed while it was being downloaded", where=str(name), fix="run again")
    return Path(folder) / name.subfolder


def _prepare_client(progress: bool) -> None:
    from huggingface_hub.utils import disable_progress_bars, logging  # type: ignore[attr-defined]

    # Its warnings quote addresses, signed ones among them.
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    if not progress:
        disable_progress_bars()


def _list(name: HubName) -> Listing:
    from huggingface_hub import HfApi, constants

    with hub_errors(str(name)):
        info = HfApi(**CLIENT).model_info(
            name.repo, revision=name.revision, files_metadata=True, timeout=constants.HF_HUB_ETAG_TIMEOUT
        )
    if info.sha is None or info.siblings is None:
        raise HubProblem("what the Hub answers is not a Hub's answer", where=str(name), fix="check HF_ENDPOINT")
    sizes = _directly_inside(name, {file.rfilename: file.size or 0 for file in info.siblings})
    hashes = _directly_inside(name, {file.rfilename: file.lfs.sha256 for file in info.siblings if file.lfs})
    return _checked(Listing(info.id, info.sha, name.subfolder, sizes, hashes))


def _cached(name: HubName) -> Listing:
    """What the cache knows of a folder that it was asked for before."""
    from huggingface_hub import get_cached_repo_tree

    with hub_errors(str(name)):
        files = get_cached_repo_tree(name.repo, revision=name.revision)
    sizes = _directly_inside(name, {file.path: file.size for file in files})
    return _checked(Listing(name.repo, name.revision or "main", name.subfolder, sizes, {}))


def _directly_inside(name: HubName, files: Mapping[str, Any]) -> dict[str, Any]:
    start = f"{name.subfolder}/" if name.subfolder else ""
    inside = {path.removeprefix(start): value for path, value in sorted(files.items()) if path.startswith(start)}
    return {path: value for path, value in inside.items() if "/" not in path}


def _checked(listing: Listing) -> Listing:
    if listing.subfolder and not listing.sizes:
        raise UsageProblem(f"has no folder {listing.subfolder!r}", where=listing.repo, fix="hf://ORG/REPO/FOLDER")
    return listing


def _goes_along(file: str, others: Mapping[str, int]) -> bool:
    """Whether a download takes a file: config, tokenizer, card, licence, weights; pickles for want of better."""
    if file in NOT_WEIGHTS:
        return False
    if file.endswith(PICKLE_SUFFIXES):
        return not any(other.endswith(SAFETENSORS) for other in others)
    return file.endswith((SAFETENSORS, *_TEXTS)) or file.startswith(_LEGAL)


def _offline() -> bool:
    from huggingface_hub import constants

    return constants.HF_HUB_OFFLINE
