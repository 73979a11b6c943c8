"""What can go wrong between a client and a Hub, as data, and what a Hub saw of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

HTML = b"<!DOCTYPE html>\n<html><head><title>Bad gateway</title></head><body>Bad gateway</body></html>\n"


@dataclass
class Fault:
    """Something that is done to requests.

    Attributes:
        where: pattern for the start of `METHOD /path?query`.
        status: answered at once, in place of doing anything.
        code, message: X-Error-Code and text of such an answer.
        headers: of such an answer, as in {"Retry-After": "7"}.
        html: whether such an answer is a page of some proxy rather than JSON.
        drop_after: the connection is cut once this many bytes of the request's body have come.
        lose_answer: the request is done, then the connection is cut.
        truncate_to: the connection is cut after this many bytes of the answer's body.
        ignore_range: the whole file is sent, with 200.
        delay: seconds to wait first.
        times: how often it happens, None for ever.
        skip: how many matching requests pass before.
    """

    where: str
    status: int | None = None
    code: str = ""
    message: str = "this was asked for"
    headers: dict[str, str] = field(default_factory=dict)
    html: bool = False
    drop_after: int | None = None
    lose_answer: bool = False
    truncate_to: int | None = None
    ignore_range: bool = False
    delay: float = 0
    times: int | None = 1
    skip: int = 0
    happened: int = 0

    def strikes(self, request: str) -> bool:
        """Whether it happens to this request; counts it."""
        if not re.match(self.where, request) or self.happened == self.times:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.happened += 1
        return True


@dataclass
class Logged:
    """One request, and what came of it; `status` is 0 while there was no answer."""

    method: str
    path: str
    headers: dict[str, str]
    authorized: bool
    writes: bool = False
    status: int = 0
    received: int = 0
    sent: int = 0

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status}"
