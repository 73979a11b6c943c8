"""Pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.hub.api.access import account_of, find, writable
from tests.hub.routes import DATE, Answer, as_json, route
from tests.hub.store import Blob, Refusal

if TYPE_CHECKING:
    from tests.hub.hub import LoopbackHub
    from tests.hub.routes import Request


@route("POST /api/models/REPO/discussions", writes=True)
def open_discussion(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    found, asked = find(hub, request, repo), request.json()
    pull = found.open_pull(asked["title"], asked["description"], account_of(request).name, "main")
    return as_json({"num": pull.number, "pullRequest": True})


@route("GET /api/models/REPO/discussions/NUMBER")
def discussion(hub: LoopbackHub, request: Request, repo: str, number: str) -> Answer:
    found = find(hub, request, repo)
    pull = found.pulls.get(int(number))
    if pull is None:
        raise Refusal(404, "Discussion not found")
    return as_json(
        {
            "title": pull.title,
            "num": pull.number,
            "author": {"name": pull.author},
            "createdAt": DATE,
            "status": pull.status,
            "repo": {"name": repo, "type": "model"},
            "isPullRequest": True,
            "events": [],
            "filesWithConflicts": [],
            "changes": {"base": f"refs/heads/{pull.base}"},
            "diff": "",
        }
    )


@route("POST /api/models/REPO/discussions/NUMBER/merge", writes=True)
def merge(hub: LoopbackHub, request: Request, repo: str, number: str) -> Answer:
    found = writable(hub, request, repo)
    pull = found.pulls[int(number)]
    files: dict[str, Blob | None] = dict(found.files(f"refs/pr/{number}"))
    found.commit(found.branch_ref(pull.base), files, f"{pull.title} (#{number})")
    pull.status = "merged"
    return as_json({})
