"""What there is: repositories, their files and their history."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tests.hub.api.access import find, readable
from tests.hub.api.cards import front_matter
from tests.hub.routes import DATE, Answer, as_json, route
from tests.hub.store import Blob, Refusal, git_id

if TYPE_CHECKING:
    from tests.hub.hub import LoopbackHub
    from tests.hub.routes import Request
    from tests.hub.store import Commit


@route("GET /api/models/REPO")
def model_info(hub: LoopbackHub, request: Request, repo: str, rev: str = "main") -> Answer:
    found = find(hub, request, repo)
    commit = found.head(rev)
    card = commit.files.get("README.md")
    data = front_matter(card.data.decode()) if card else None
    siblings = [
        {"rfilename": path} | (_sizes(blob) if request.query.get("blobs") else {})
        for path, blob in commit.files.items()
    ]
    info = {
        "_id": git_id(repo.encode())[:24],
        "id": repo,
        "modelId": repo,
        "author": repo.split("/")[0],
        "sha": commit.oid,
        "createdAt": DATE,
        "lastModified": DATE,
        "private": found.private,
        "gated": "manual" if found.gated else False,
        "disabled": False,
        "tags": [],
        "siblings": siblings,
    }
    return as_json(info | ({"cardData": data} if isinstance(data, dict) else {}))


@route("GET /api/models/REPO/revision/REV")
def model_info_at(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    return model_info(hub, request, repo, rev)


def _sizes(blob: Blob) -> dict[str, Any]:
    lfs = {"sha256": blob.sha256, "size": blob.size, "pointerSize": len(blob.pointer)} if blob.lfs else None
    return {"size": blob.size, "blobId": blob.oid} | ({"lfs": lfs} if lfs else {})


def _entry(path: str, blob: Blob) -> dict[str, Any]:
    lfs = {"oid": blob.sha256, "size": blob.size, "pointerSize": len(blob.pointer)} if blob.lfs else None
    return {"type": "file", "oid": blob.oid, "size": blob.size, "path": path} | ({"lfs": lfs} if lfs else {})


def _entries(commit: Commit, folder: str, recursive: bool) -> list[dict[str, Any]]:
    inside = {path: blob for path, blob in commit.files.items() if path.startswith(folder)}
    if folder and not inside:
        raise Refusal(404, f"{folder} does not exist", "EntryNotFound")
    folders = {path[: end.start()] for path in inside for end in re.finditer("/", path) if end.start() >= len(folder)}
    known = {path: _entry(path, blob) for path, blob in inside.items()}
    for name in folders:
        listing = repr([(path, blob.oid) for path, blob in inside.items() if path.startswith(f"{name}/")])
        known[name] = {"type": "directory", "oid": git_id(listing.encode()), "size": 0, "path": name}
    return [entry for path, entry in sorted(known.items()) if recursive or "/" not in path[len(folder) :]]


@route("GET /api/models/REPO/tree/REV")
def tree(hub: LoopbackHub, request: Request, repo: str, rev: str, path: str = "") -> Answer:
    commit = find(hub, request, repo).head(rev)
    recursive = request.query.get("recursive", "").lower() in ("true", "1")
    return as_json(_entries(commit, f"{path.rstrip('/')}/" if path else "", recursive), headers=_at(commit))


@route("GET /api/models/REPO/tree/REV/PATH")
def tree_below(hub: LoopbackHub, request: Request, repo: str, rev: str, path: str) -> Answer:
    return tree(hub, request, repo, rev, path)


@route("POST /api/models/REPO/paths-info/REV")
def paths_info(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    commit = find(hub, request, repo).head(rev)
    wanted = {unquote(pair.partition("=")[2].replace("+", " ")) for pair in request.body.decode().split("&")}
    return as_json([entry for entry in _entries(commit, "", recursive=True) if entry["path"] in wanted])


@route("GET /api/models/REPO/refs")
def refs(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    found = find(hub, request, repo)

    def listed(start: str) -> list[dict[str, str]]:
        return [
            {"name": ref.removeprefix(start), "ref": ref, "targetCommit": oid}
            for ref, oid in found.refs.items()
            if ref.startswith(start)
        ]

    kinds = {"branches": listed("refs/heads/"), "tags": listed("refs/tags/"), "converts": []}
    return as_json(kinds | ({"pullRequests": listed("refs/pr/")} if request.query.get("include_prs") else {}))


@route("GET /api/models/REPO/commits/REV")
def commits(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    return as_json(
        [
            {"id": each.oid, "title": each.title, "message": each.description, "date": DATE, "authors": []}
            for each in find(hub, request, repo).history(rev)
        ]
    )


def _at(commit: Commit) -> dict[str, str]:
    return {"X-Repo-Commit": commit.oid}


@route("(GET|HEAD) /REPO/resolve/REV/PATH")
def resolve(hub: LoopbackHub, request: Request, repo: str, rev: str, path: str) -> Answer:
    commit = readable(hub, request, repo).head(rev)
    blob = commit.files.get(path)
    if blob is None:
        raise Refusal(404, "Entry not found", "EntryNotFound", headers=_at(commit))
    if not blob.lfs:
        return Answer(headers={**_at(commit), "ETag": f'"{blob.oid}"'}, blob=blob)
    hub.objects.setdefault(blob.sha256, blob)
    linked = {"X-Linked-Size": str(blob.size), "X-Linked-Etag": f'"{blob.sha256}"'}
    signed = f"{hub.storage}/objects/{blob.sha256}?X-Signature=of-the-loopback-hub"
    return Answer(status=302, headers={**_at(commit), **linked, "Location": signed})


@route("GET /objects/OID")
def stored_object(hub: LoopbackHub, request: Request, oid: str) -> Answer:
    return Answer(headers={"ETag": f'"{oid}"'}, blob=hub.objects[oid])
