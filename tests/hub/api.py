"""The Hub's endpoints that the client uses for model repositories, one function each."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

import yaml

from tests.hub.store import Blob, Commit, Refusal, Repo, git_id, goes_to_lfs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hub.hub import Account, LoopbackHub

DATE = "2026-01-01T00:00:00.000Z"
LICENSES = {"apache-2.0", "mit", "llama3", "llama3.1", "llama3.3", "gemma", "cc-by-4.0", "cc-by-nc-4.0", "other"}
_WILDCARDS = {"REPO": r"(?P<repo>[^/]+/[^/]+)", "REV": r"(?P<rev>[^/]+)", "NAME": r"(?P<name>[^/]+)"}
_WILDCARDS |= {"PATH": r"(?P<path>.+)", "OID": r"(?P<oid>[0-9a-f]{64})", "NUMBER": r"(?P<number>\d+)"}


@dataclass
class Request:
    method: str
    target: str  # as sent, with the query
    path: str
    query: dict[str, str]
    body: bytes
    account: Account | None

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    blob: Blob | None = None  # served in ranges, in place of a body


class Route(NamedTuple):
    pattern: re.Pattern[str]
    function: Callable[..., Answer]
    writes: bool


ROUTES: list[Route] = []


def route(line: str, *, writes: bool = False) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Register a function for `METHOD /path`, where words in capitals are parameters."""
    pattern = re.sub("|".join(_WILDCARDS), lambda word: _WILDCARDS[word[0]], line.replace(".git", r"\.git"))

    def register(function: Callable[..., Answer]) -> Callable[..., Answer]:
        ROUTES.append(Route(re.compile(pattern), function, writes))
        return function

    return register


def find_route(request: Request) -> tuple[Route, dict[str, str]] | None:
    for each in ROUTES:
        if match := each.pattern.fullmatch(f"{request.method} {request.path}"):
            return each, {name: unquote(value) for name, value in match.groupdict().items()}
    return None


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    return Answer(json.dumps(value).encode(), status, {"Content-Type": "application/json", **(headers or {})})


def refused(refusal: Refusal) -> Answer:
    return as_json({"error": refusal.message}, refusal.status, refusal.headers)


# Who may


def _account(request: Request) -> Account:
    if request.account is None:
        raise Refusal(401, "Invalid username or password.")
    return request.account


def _find(hub: LoopbackHub, request: Request, name: str) -> Repo:
    if name in hub.renamed:
        moved = request.target.replace(f"/{name}", f"/{hub.renamed[name]}", 1)
        raise Refusal(307, "Temporary Redirect", headers={"Location": moved})
    repo = hub.repos.get(name)
    if repo and (not repo.private or (request.account and request.account.may_read(name))):
        return repo
    # Whoever has not said who he is learns nothing of what there is.
    if request.account is None:
        raise Refusal(401, "Invalid username or password.")
    raise Refusal(404, "Repository not found", "RepoNotFound")


def _content(hub: LoopbackHub, request: Request, name: str) -> Repo:
    """A repository whose files may be read."""
    repo = _find(hub, request, name)
    if repo.gated and not (request.account and request.account.may_read(name)):
        said = f"Access to model {name} is restricted. You must have access to it and be authenticated to access it."
        raise Refusal(403 if request.account else 401, said, "GatedRepo")
    return repo


def _writable(hub: LoopbackHub, request: Request, name: str) -> Repo:
    account = _account(request)
    repo = _find(hub, request, name)
    if not account.may_write(name):
        raise Refusal(403, "you don't have the rights to write to this repository")
    return repo


@route("GET /api/whoami-v2")
def whoami(hub: LoopbackHub, request: Request) -> Answer:
    account = _account(request)
    if not account.name:
        raise Refusal(403, "this token belongs to no user")
    return as_json(
        {
            "type": "user",
            "id": git_id(account.name.encode())[:24],
            "name": account.name,
            "fullname": account.name,
            "orgs": [{"type": "org", "name": name, "roleInOrg": role} for name, role in account.orgs.items()],
            "auth": {"type": "access_token", "accessToken": {"displayName": "loopback", "role": account.role}},
        }
    )


@route("POST /oauth/token")
def exchange_token(hub: LoopbackHub, request: Request) -> Answer:
    asked = request.json()
    token = hub.exchange(asked["subject_token"], asked["resource"])
    if token is None:
        return as_json({"error": "invalid_grant"}, 400)
    return as_json({"access_token": token, "token_type": "bearer", "expires_in": 3600})


@route("GET /api/models/REPO/auth-check")
def auth_check(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    _content(hub, request, repo)
    return Answer()


@route("GET /api/models/REPO/auth-check/write")
def auth_check_write(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    _writable(hub, request, repo)
    return Answer()


# What there is


@route("GET /api/models/REPO")
def model_info(hub: LoopbackHub, request: Request, repo: str, rev: str = "main") -> Answer:
    found = _find(hub, request, repo)
    commit = found.head(rev)
    card = commit.files.get("README.md")
    data = _front_matter(card.data.decode()) if card else None
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
    commit = _find(hub, request, repo).head(rev)
    recursive = request.query.get("recursive", "").lower() in ("true", "1")
    return as_json(_entries(commit, f"{path.rstrip('/')}/" if path else "", recursive), headers=_at(commit))


@route("GET /api/models/REPO/tree/REV/PATH")
def tree_below(hub: LoopbackHub, request: Request, repo: str, rev: str, path: str) -> Answer:
    return tree(hub, request, repo, rev, path)


@route("POST /api/models/REPO/paths-info/REV")
def paths_info(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    commit = _find(hub, request, repo).head(rev)
    wanted = {unquote(pair.partition("=")[2].replace("+", " ")) for pair in request.body.decode().split("&")}
    return as_json([entry for entry in _entries(commit, "", recursive=True) if entry["path"] in wanted])


@route("GET /api/models/REPO/refs")
def refs(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    found = _find(hub, request, repo)

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
            for each in _find(hub, request, repo).history(rev)
        ]
    )


def _at(commit: Commit) -> dict[str, str]:
    return {"X-Repo-Commit": commit.oid}


@route("(GET|HEAD) /REPO/resolve/REV/PATH")
def resolve(hub: LoopbackHub, request: Request, repo: str, rev: str, path: str) -> Answer:
    commit = _content(hub, request, repo).head(rev)
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


# Changes


@route("POST /api/repos/create", writes=True)
def create_repo(hub: LoopbackHub, request: Request) -> Answer:
    account, asked = _account(request), request.json()
    name = f"{asked.get('organization') or account.name}/{asked['name']}"
    if not account.may_write(name):
        raise Refusal(403, f"You don't have the rights to create a model under the namespace {name.split('/')[0]!r}")
    url = {"url": f"{hub.endpoint}/{name}", "name": name}
    if name in hub.repos:
        return as_json({"error": "You already created this model repo", **url}, 409)
    hub.repos[name] = Repo(name, private=asked.get("visibility") == "private")
    return as_json(url)


@route("POST /api/validate-yaml")
def validate_yaml(hub: LoopbackHub, request: Request) -> Answer:
    try:
        data = _front_matter(request.json()["content"])
    except yaml.YAMLError as error:
        return as_json({"errors": [{"message": f"YAML: {error}"}], "warnings": []}, 400)
    if not data:
        return as_json({"errors": [], "warnings": [{"message": "empty or missing yaml metadata in repo card"}]})
    lists = ("tags", "language", "datasets")
    faults = [f'"{key}" must be an array' for key in lists if not isinstance(data.get(key, []), list)]
    if data.get("license", "other") not in LICENSES:
        faults.append('"license" must be one of [...]')
    base = data.get("base_model", [])
    if not all(re.fullmatch(r"[\w.-]+/[\w.-]+", each) for each in ([base] if isinstance(base, str) else base)):
        faults.append('"base_model" with value is not valid. Use a model id from https://hf.co/models.')
    return as_json({"errors": [{"message": fault} for fault in faults], "warnings": []}, 400 if faults else 200)


def _front_matter(card: str) -> Any:
    found = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
    return yaml.safe_load(found[1]) if found else None


@route("POST /api/models/REPO/preupload/REV")
def preupload(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    reader = _find if request.query.get("create_pr") else _writable
    files = reader(hub, request, repo).files(rev)

    def answer(file: dict[str, Any]) -> dict[str, Any]:
        mode = "lfs" if goes_to_lfs(file["path"], file["size"]) else "regular"
        there = files.get(file["path"])
        oid = there and (there.sha256 if there.lfs else there.oid)
        return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False} | ({"oid": oid} if oid else {})

    return as_json({"files": [answer(file) for file in request.json()["files"]]})


@route("POST /REPO.git/info/lfs/objects/batch", writes=True)
def lfs_batch(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    _account(request)
    _find(hub, request, repo)

    def answer(wanted: dict[str, Any]) -> dict[str, Any]:
        oid, size = wanted["oid"], wanted["size"]
        there = {"oid": oid, "size": size}
        if oid in hub.objects:
            return there
        upload: dict[str, Any] = {"href": f"{hub.storage}/objects/{oid}"}
        if hub.part_bytes and size > hub.part_bytes:
            count = -(-size // hub.part_bytes)
            parts = {str(number): f"{hub.storage}/parts/{oid}/{number}" for number in range(1, count + 1)}
            upload = {"href": f"{hub.endpoint}/complete", "header": {"chunk_size": str(hub.part_bytes), **parts}}
        verify = {"href": f"{hub.endpoint}/{quote(repo)}.git/info/lfs/verify"}
        return {**there, "authenticated": True, "actions": {"upload": upload, "verify": verify}}

    return as_json({"transfer": "basic", "objects": [answer(each) for each in request.json()["objects"]]})


@route("PUT /objects/OID", writes=True)
def put_object(hub: LoopbackHub, request: Request, oid: str) -> Answer:
    _store(hub, oid, request.body)
    return Answer()


@route("PUT /parts/OID/NUMBER", writes=True)
def put_part(hub: LoopbackHub, request: Request, oid: str, number: str) -> Answer:
    hub.parts[oid, int(number)] = request.body
    return Answer(headers={"ETag": f'"{git_id(request.body)}"'})


@route("POST /complete", writes=True)
def complete(hub: LoopbackHub, request: Request) -> Answer:
    asked = request.json()
    _store(hub, asked["oid"], b"".join(hub.parts[asked["oid"], part["partNumber"]] for part in asked["parts"]))
    return as_json({})


def _store(hub: LoopbackHub, oid: str, data: bytes) -> None:
    if hashlib.sha256(data).hexdigest() != oid:
        raise Refusal(400, "the content does not have that SHA-256")
    hub.objects[oid] = Blob(data, lfs=True)


@route("POST /REPO.git/info/lfs/verify")
def lfs_verify(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    asked = request.json()
    stored = hub.objects.get(asked["oid"])
    if stored is None or stored.size != asked["size"]:
        raise Refusal(404, "the object is not there")
    return as_json({})


@route("POST /api/models/REPO/commit/REV", writes=True)
def commit(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    create_pr = bool(request.query.get("create_pr"))
    found = _find(hub, request, repo) if create_pr else _writable(hub, request, repo)
    account = _account(request)
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
    found = _writable(hub, request, repo)
    if f"refs/heads/{name}" in found.refs:
        raise Refusal(409, f"Reference already exists: refs/heads/{name}")
    found.refs[f"refs/heads/{name}"] = found.head(request.json().get("startingPoint") or "main").oid
    return as_json({})


@route("POST /api/models/REPO/tag/REV", writes=True)
def create_tag(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    found, asked = _writable(hub, request, repo), request.json()
    if f"refs/tags/{asked['tag']}" in found.refs:
        raise Refusal(409, "Tag reference exists already")
    found.refs[f"refs/tags/{asked['tag']}"] = found.head(rev).oid
    found.tag_messages[asked["tag"]] = asked.get("message", "")
    return as_json({})


@route("POST /api/models/REPO/discussions", writes=True)
def open_discussion(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    found, asked = _find(hub, request, repo), request.json()
    pull = found.open_pull(asked["title"], asked["description"], _account(request).name, "main")
    return as_json({"num": pull.number, "pullRequest": True})


@route("GET /api/models/REPO/discussions/NUMBER")
def discussion(hub: LoopbackHub, request: Request, repo: str, number: str) -> Answer:
    found = _find(hub, request, repo)
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
    found = _writable(hub, request, repo)
    pull = found.pulls[int(number)]
    files: dict[str, Blob | None] = dict(found.files(f"refs/pr/{number}"))
    found.commit(found.branch_ref(pull.base), files, f"{pull.title} (#{number})")
    pull.status = "merged"
    return as_json({})
