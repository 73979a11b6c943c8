"""Requests, answers, and the table of endpoints; the modules of `tests.hub.api` fill it, one function each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hub.hub import Account
    from tests.hub.store import Blob, Refusal

DATE = "2026-01-01T00:00:00.000Z"
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
