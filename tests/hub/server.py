"""HTTP/1.1 for the loopback Hub: requests in, answers out, faults in between, everything logged."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from tests.hub.api import find_route
from tests.hub.faults import HTML, Fault, Logged
from tests.hub.routes import Answer, Request, Route, as_json, refused
from tests.hub.store import Refusal

if TYPE_CHECKING:
    from tests.hub.hub import LoopbackHub

_BLOCK = 1 << 16


class Server:
    """One origin of the Hub."""

    def __init__(self, hub: LoopbackHub, host: str) -> None:
        handler = type("BoundHandler", (_Handler,), {"hub": hub})
        self._http = _Http(("127.0.0.1", 0), handler)
        self.url = f"http://{host}:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    # Connections that do not fit into the default of 5 wait for seconds, or are refused.
    request_queue_size = 64


class _Cut(Exception):
    """The connection is to be cut."""


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._handle()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the names that the library looks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Said nowhere: the hub has a log of its own."""

    def _handle(self) -> None:
        authorization = self.headers.get("Authorization", "")
        shown = {name: "Bearer ***" if name.lower() == "authorization" else text for name, text in self.headers.items()}
        self.entry = Logged(self.command, self.path, shown, bool(authorization))
        with self.hub.lock:
            self.hub.log.append(self.entry)
            line = f"{self.command} {self.path}"
            self.faults = [fault for fault in self.hub.faults if fault.strikes(line)]
        try:
            self._answer(authorization)
        except (_Cut, BrokenPipeError, ConnectionResetError):
            self._cut()

    def _answer(self, authorization: str) -> None:
        url = urlsplit(self.path)
        account = self.hub.accounts.get(authorization.removeprefix("Bearer "))
        request = Request(self.command, self.path, url.path, dict(parse_qsl(url.query)), b"", account)
        found = find_route(request)
        self.entry.writes = bool(found and found[0].writes)
        cut_after = next((fault.drop_after for fault in self.faults if fault.drop_after is not None), None)
        request.body = self._body(cut_after)
        time.sleep(sum(fault.delay for fault in self.faults))
        answer = self._asked_for() or self._done(request, found, bool(authorization))
        if any(fault.lose_answer for fault in self.faults):
            raise _Cut
        self._send(answer)

    def _body(self, cut_after: int | None) -> bytes:
        parts: list[bytes] = []
        for part in self._chunks():
            parts.append(part)
            self.entry.received += len(part)
            if cut_after is not None and self.entry.received >= cut_after:
                raise _Cut
        if cut_after is not None:
            raise _Cut
        return b"".join(parts)

    def _chunks(self) -> Any:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length", 0))
        while left:
            part = self.rfile.read1(min(left, _BLOCK))
            if not part:
                raise _Cut
            left -= len(part)
            yield part

    def _asked_for(self) -> Answer | None:
        """The answer that a fault prescribes."""
        fault: Fault | None = next((fault for fault in self.faults if fault.status is not None), None)
        if fault is None or fault.status is None:
            return None
        if fault.html:
            return Answer(HTML, fault.status, {"Content-Type": "text/html; charset=utf-8", **fault.headers})
        return refused(Refusal(fault.status, fault.message, fault.code, fault.headers))

    def _done(self, request: Request, found: tuple[Route, dict[str, str]] | None, authorized: bool) -> Answer:
        try:
            if authorized and request.account is None:
                return refused(Refusal(401, "Invalid credentials in Authorization header"))
            if found is None:
                return refused(Refusal(404, "there is no such page on the loopback Hub"))
            route, values = found
            with self.hub.lock:
                return route.function(self.hub, request, **values)
        except Refusal as refusal:
            return refused(refusal)

    def _send(self, answer: Answer) -> None:
        start, stop = 0, answer.blob.size if answer.blob else len(answer.body)
        status = answer.status
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if answer.blob and wanted and not any(fault.ignore_range for fault in self.faults):
            first, last = int(wanted[1]), int(wanted[2] or stop - 1)
            if first >= stop:
                answer = as_json({"error": "Requested range not satisfiable"}, 416)
                start, stop, status = 0, len(answer.body), 416
            else:
                answer.headers["Content-Range"] = f"bytes {first}-{min(last, stop - 1)}/{stop}"
                start, stop, status = first, min(last + 1, stop), 206
        self.entry.status = status
        self.send_response(status)
        if answer.blob:
            answer.headers["Accept-Ranges"] = "bytes"
        for name, text in {**answer.headers, "Content-Length": str(stop - start), "X-Request-Id": "loopback"}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command == "HEAD":
            return
        limit = next((fault.truncate_to for fault in self.faults if fault.truncate_to is not None), None)
        end = stop if limit is None else min(stop, start + limit)
        for position in range(start, end, _BLOCK):
            last = min(position + _BLOCK, end)
            self._write(answer.blob.read(position, last) if answer.blob else answer.body[position:last])
        if end < stop:
            raise _Cut

    def end_headers(self) -> None:
        self.entry.sent += sum(map(len, self._headers_buffer)) + 2
        super().end_headers()

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.entry.sent += len(data)

    def _cut(self) -> None:
        """Reset, so that the client notices at once."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
