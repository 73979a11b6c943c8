"""Who is asking, and what they may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.hub.routes import Answer, as_json, route
from tests.hub.store import Refusal, Repo, git_id

if TYPE_CHECKING:
    from tests.hub.hub import Account, LoopbackHub
    from tests.hub.routes import Request


def account_of(request: Request) -> Account:
    if request.account is None:
        raise Refusal(401, "Invalid username or password.")
    return request.account


def find(hub: LoopbackHub, request: Request, name: str) -> Repo:
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


def readable(hub: LoopbackHub, request: Request, name: str) -> Repo:
    """A repository whose files may be read."""
    repo = find(hub, request, name)
    if repo.gated and not (request.account and request.account.may_read(name)):
        said = f"Access to model {name} is restricted. You must have access to it and be authenticated to access it."
        raise Refusal(403 if request.account else 401, said, "GatedRepo")
    return repo


def writable(hub: LoopbackHub, request: Request, name: str) -> Repo:
    account = account_of(request)
    repo = find(hub, request, name)
    if not account.may_write(name):
        raise Refusal(403, "you don't have the rights to write to this repository")
    return repo


@route("GET /api/whoami-v2")
def whoami(hub: LoopbackHub, request: Request) -> Answer:
    account = account_of(request)
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
    readable(hub, request, repo)
    return Answer()


@route("GET /api/models/REPO/auth-check/write")
def auth_check_write(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    writable(hub, request, repo)
    return Answer()
