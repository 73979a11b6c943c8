"""The loopback Hub itself: what it holds, what it saw, and how the client is pointed to it."""

from __future__ import annotations

import os
import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hub.server import Server
from tests.hub.store import Blob, Repo, goes_to_lfs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest

    from tests.hub.faults import Fault, Logged


@dataclass
class Account:
    """Who a token belongs to; `role` is the token's."""

    name: str
    orgs: dict[str, str] = field(default_factory=dict)
    role: str = "write"

    def may_read(self, repo: str) -> bool:
        return repo.split("/")[0] in (self.name, *self.orgs)

    def may_write(self, repo: str) -> bool:
        owner = repo.split("/")[0]
        return self.role == "write" and (owner == self.name or self.orgs.get(owner) in ("write", "admin"))


@dataclass
class Publisher(Account):
    """A CI job, which may write to one repository and is nobody."""

    repo: str = ""

    def may_read(self, repo: str) -> bool:
        return repo == self.repo

    def may_write(self, repo: str) -> bool:
        return repo == self.repo


class LoopbackHub:
    """See the package's docstring.

    Attributes:
        endpoint: where it is, as HF_ENDPOINT.
        storage: where it has large files, another origin.
        accounts: by token.
        publishers: by the id token of a CI job, the repository that trusts it.
        objects: large files by SHA-256.
        part_bytes: larger uploads are asked for in parts of this size; 0 for never.
        home: HF_HOME of the client.
    """

    user = "tester"

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._patch = monkeypatch
        self.lock = threading.Lock()
        self.repos: dict[str, Repo] = {}
        self.renamed: dict[str, str] = {}
        self.objects: dict[str, Blob] = {}
        self.parts: dict[tuple[str, int], bytes] = {}
        self.part_bytes = 0
        self.faults: list[Fault] = []
        self.log: list[Logged] = []
        self.token = new_token()
        self.accounts = {self.token: Account(self.user, {"acme": "write", "readers": "read"})}
        self.publishers: dict[str, str] = {}
        # Two names of this machine: clients take the storage for another's, as it is on the Hub.
        self._servers = [Server(self, "127.0.0.1"), Server(self, "localhost")]
        self.endpoint, self.storage = (server.url for server in self._servers)

    def start(self) -> None:
        for server in self._servers:
            server.start()
        self._point_client()
        self.log_in()

    def stop(self) -> None:
        from huggingface_hub import close_session

        close_session()
        for server in self._servers:
            server.stop()

    def _point_client(self) -> None:
        """What the client reads from the environment when it is imported, for a process that has imported it."""
        from huggingface_hub import close_session, constants
        from huggingface_hub.hf_api import api

        close_session()
        self._patch.setattr(api, "endpoint", self.endpoint)
        cache = self.home / "hub"
        self.env = {
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(self.home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        }
        values = {
            "ENDPOINT": self.endpoint,
            "HUGGINGFACE_CO_URL_TEMPLATE": self.endpoint + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HOME": str(self.home),
            "HF_HUB_CACHE": str(cache),
            "HUGGINGFACE_HUB_CACHE": str(cache),
            "HF_TOKEN_PATH": str(self.home / "token"),
            "HF_STORED_TOKENS_PATH": str(self.home / "stored_tokens"),
            "HF_HUB_DISABLE_XET": True,
            "HF_HUB_DISABLE_TELEMETRY": True,
            "HF_HUB_OFFLINE": False,
        }
        for name, value in values.items():
            self._patch.setattr(constants, name, value)
        for name in [name for name in os.environ if name.startswith(("HF_", "HUGGING_FACE_"))]:
            self._patch.delenv(name)
        for name, text in self.env.items():
            self._patch.setenv(name, text)

    def log_in(self, logged_in: bool = True, *, token: str = "") -> None:
        """Give the client the user's token, another one, or none."""
        if logged_in:
            self._patch.setenv("HF_TOKEN", token or self.token)
        else:
            self._patch.delenv("HF_TOKEN", raising=False)

    def offline(self) -> None:
        """Forbid the client to use the network."""
        from huggingface_hub import constants

        self._patch.setenv("HF_HUB_OFFLINE", "1")
        self._patch.setattr(constants, "HF_HUB_OFFLINE", True)

    def add(
        self, name: str, files: Path | Mapping[str, bytes | Blob], *, private: bool = False, gated: bool = False
    ) -> Repo:
        """A repository with one commit of these files after the first one, or one more commit in it."""
        repo = self.repos.setdefault(name, Repo(name, private, gated))
        repo.private, repo.gated = private, gated
        found = dict(_read(files) if isinstance(files, Path) else files)
        blobs = {path: data if isinstance(data, Blob) else _blob(path, data) for path, data in found.items()}
        repo.commit("refs/heads/main", dict(blobs), "add files")
        return repo

    def exchange(self, id_token: str, repo: str) -> str | None:
        """A token of trusted publishing, for a CI job that the repository trusts."""
        if self.publishers.get(id_token) != repo:
            return None
        token = new_token()
        self.accounts[token] = Publisher("", repo=repo)
        return token

    def rename(self, old: str, new: str) -> None:
        self.repos[new] = self.repos.pop(old)
        self.repos[new].name = new
        self.renamed[old] = new

    @property
    def writes(self) -> list[Logged]:
        """Requests that ask for a change."""
        return [entry for entry in self.log if entry.writes]

    @property
    def sent(self) -> int:
        """Bytes sent, headers included."""
        return sum(entry.sent for entry in self.log)

    def clear_log(self) -> None:
        self.log.clear()


def new_token() -> str:
    """Like a user's token; made up each time, so that none stands in any file."""
    return "hf_" + secrets.token_hex(17)


def _read(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def _blob(path: str, data: bytes) -> Blob:
    return Blob(data, lfs=goes_to_lfs(path, len(data)))
