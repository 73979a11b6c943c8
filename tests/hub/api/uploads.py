"""Files on their way: which go to LFS, and the storage that takes those."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.hub.api.access import account_of, find, writable
from tests.hub.routes import Answer, as_json, route
from tests.hub.store import Blob, Refusal, git_id, goes_to_lfs

if TYPE_CHECKING:
    from tests.hub.hub import LoopbackHub
    from tests.hub.routes import Request


@route("POST /api/models/REPO/preupload/REV")
def preupload(hub: LoopbackHub, request: Request, repo: str, rev: str) -> Answer:
    reader = find if request.query.get("create_pr") else writable
    files = reader(hub, request, repo).files(rev)

    def answer(file: dict[str, Any]) -> dict[str, Any]:
        mode = "lfs" if goes_to_lfs(file["path"], file["size"]) else "regular"
        there = files.get(file["path"])
        oid = there and (there.sha256 if there.lfs else there.oid)
        return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False} | ({"oid": oid} if oid else {})

    return as_json({"files": [answer(file) for file in request.json()["files"]]})


@route("POST /REPO.git/info/lfs/objects/batch", writes=True)
def lfs_batch(hub: LoopbackHub, request: Request, repo: str) -> Answer:
    account_of(request)
    find(hub, request, repo)

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
