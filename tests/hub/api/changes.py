"""Changes: repositories, commits, branches and tags."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from tests.hub.api.access import account_of, find, writable
from tests.hub.routes import Answer, as_json, route
from tests.hub.store import Blob, Refusal, Repo

if TYPE_CHECKING:
    from tests.hub.hub import LoopbackHub
    from tests.hub.routes import Request


@route("POST /api/repos/create", writes=True)
def create_repo(hub: LoopbackHub, request: Request) -> Answer:
    account, asked = account_of(request), request.json()
    name = f"{asked.get('organization') or account.name}/{asked['name']}"
    if not account.may_write(name):
        raise Refusal(403, f"You don't have the rights to create a model under the namespace {name.split('/')[0]!r}")
    url = {"url": f"{hub.endpoint}/{name}", "name": name}
    if name in hub.repos:
        return as_json({"error": "You already created this model repo", **url}, 409)
    hub.repos[name] = Repo(name, private=asked.get("visibility") == "private")
    return as_json(url)


@route("POST /api/models/REPO/commit/REV", writes=True)
def commit(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    create_pr = bool(request.query.get("create_pr"))
    found = find(hub, request, repo) if create_pr else writable(hub, request, repo)
    account = account_of(request)
    lines = [json.loads(line) for line in request.body.splitlines() if line]
    header = next(line["value"] for line in lines if line["key"] == "header")
    ref = found.branch_ref(rev)
    parent = header.get("parentCommit")
    if parent and not found.refs[ref].startswith(parent):
        raise Refusal(412, "A commit has happened since. Please refresh and try again.")
    changes = _changes(hub, found.files(rev), [line for line in lines if line["key"] != "header"])
    pull = None
    if create_pr:
        pull = found.open_pull(header["summary"], header.get("description", ""), account.name, rev)
        ref = f"refs/pr/{pull.number}"
    made = found.commit(ref, changes, header["summary"], header.get("description", ""))
    url = f"{hub.endpoint}/{repo}"
    opened = {"pullRequestUrl": f"{url}/discussions/{pull.number}"} if pull else {}
    return as_json(
        {"success": True, "commitOid": made.oid, "commitUrl": f"{url}/commit/{made.oid}", "hookOutput": "", **opened}
    )


def _changes(hub: LoopbackHub, files: dict[str, Blob], lines: list[dict[str, Any]]) -> dict[str, Blob | None]:
    changes: dict[str, Blob | None] = {}
    for line in lines:
        value = line["value"]
        path = value["path"]
        match line["key"]:
            case "file":
                changes[path] = Blob(base64.b64decode(value["content"]))
            case "lfsFile":
                stored = hub.objects.get(value["oid"])
                if stored is None or stored.size != value.get("size", stored.size):
                    raise Refusal(400, f"LFS pointer pointed to a file that does not exist: {path!r}")
                changes[path] = Blob(stored.data, stored.size, lfs=True)
            case "deletedFile":
                if path not in files:
                    raise Refusal(404, "A file with this name doesn't exist", "EntryNotFound")
                changes[path] = None
            case "deletedFolder":
                changes |= dict.fromkeys(each for each in files if each.startswith(f"{path.rstrip('/')}/"))
    return changes


@route("POST /api/models/REPO/branch/NAME", writes=True)
def create_branch(hub: LoopbackHub, request: Request, repo: str, name: str) -> Answer:
    found = writable(hub, request, repo)
    if f"refs/heads/{name}" in found.refs:
        raise Refusal(409, f"Reference already exists: refs/heads/{name}")
    found.refs[f"refs/heads/{name}"] = found.head(request.json().get("startingPoint") or "main").oid
    return as_json({})


@route("POST /api/models/REPO/tag/REV", writes=True)
def create_tag(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    found, asked = writable(hub, request, repo), request.json()
    if f"refs/tags/{asked['tag']}" in found.refs:
        raise Refusal(409, "Tag reference exists already")
    found.refs[f"refs/tags/{asked['tag']}"] = found.head(rev).oid
    found.tag_messages[asked["tag"]] = asked.get("message", "")
    return as_json({})
