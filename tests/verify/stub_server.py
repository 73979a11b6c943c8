"""A vLLM server as far as eaglehub asks one: letters are tokens, and an answer is the prompt read backwards."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

K = 3


@dataclass
class Stub:
    """What it does, and what it was asked.

    Attributes:
        speculates: whether it keeps counters of drafts.
        drafts: whether it drafts at all.
        wrong: nats by which the target likes another token better than the fourth of each answer.
        models: those it has.
        key: without it requests are refused.
        reply: path to the (status, content type, body) that is given in place of an answer.
        too_long: prompts with this word are refused.
        strangers: requests of others that it counts for each of ours.
        keeps: fields of answers that it does not give.
        event: what it streams in place of the counts of tokens.
    """

    speculates: bool = True
    drafts: bool = True
    wrong: float = 0.0
    models: tuple[str, ...] = ("org/target",)
    key: str = ""
    reply: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    too_long: str = "\0"
    strangers: int = 0
    keeps: tuple[str, ...] = ()
    hangs: bool = False
    event: dict[str, Any] | None = None
    requests: int = 0
    walked: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    running: int = 0
    most: int = 0
    lock: Any = field(default_factory=threading.Lock)
    url: str = ""

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        yield
        with self.lock:
            self.running -= 1
            self.requests += 1 + self.strangers
            self.walked += 4 * self.drafts

    def metrics(self) -> str:
        labels = 'engine="0",model_name="org/target"'
        lines = [f'vllm:request_success_total{{{labels},finished_reason="length"}} {float(self.requests)}']
        if self.speculates:
            lines += [
                "# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.",
                f"vllm:spec_decode_num_drafts_total{{{labels}}} {float(self.walked)}",
                f"vllm:spec_decode_num_draft_tokens_total{{{labels}}} {float(K * self.walked)}",
                f"vllm:spec_decode_num_accepted_tokens_total{{{labels}}} {self.walked * 1.0}",
            ]
            accepted = [self.walked * 3 // 4, self.walked // 4, 0]
            name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
            lines += [f'{name}{{{labels},position="{i}"}} {float(count)}' for i, count in enumerate(accepted)]
            lines += [f"vllm:spec_decode_num_drafts_created{{{labels}}} 1.7e+09"]
        return "\n".join(lines) + "\n"


def chat(stub: Stub, body: dict[str, Any]) -> dict[str, Any]:
    prompt = [ord(letter) for letter in "".join(message["content"] for message in body["messages"])]
    tokens = (prompt[::-1] * body["max_tokens"])[: body["max_tokens"]]
    answer = {"prompt_token_ids": prompt, "choices": [{"token_ids": tokens, "message": {"content": ""}}]}
    return {name: value for name, value in answer.items() if name not in stub.keeps}


def score(stub: Stub, body: dict[str, Any]) -> dict[str, Any]:
    prompt = body["prompt"]
    start = len(prompt) - 8  # the tests ask for answers of 8 tokens
    ranks: list[Any] = [None]
    for place, token in enumerate(prompt[1:], start=1):
        better = stub.wrong if place == start + 3 else 0.0
        ranks.append({str(token): {"logprob": -1.0 - better}, "7": {"logprob": -1.0 if better else -1.5}})
    return {"choices": [{"prompt_logprobs": ranks}]}


class Handler(BaseHTTPRequestHandler):
    stub: Stub

    def do_GET(self) -> None:
        models = {"data": [{"id": name, "max_model_len": 4096} for name in self.stub.models]}
        known = {"/v1/models": json.dumps(models), "/version": '{"version": "0.32.0"}', "/metrics": self.stub.metrics()}
        self._answer(known.get(self.path))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.stub.bodies.append(body)
        if self.path == "/v1/completions":
            self._answer(json.dumps(score(self.stub, body)))
        elif self.stub.too_long in json.dumps(body["messages"]):
            self._send(400, "application/json", '{"error": {"message": "the prompt is too long"}}')
        else:
            with self.stub.counted():
                self._answer(None if body.get("stream") else json.dumps(chat(self.stub, body)), body)

    def _answer(self, text: str | None, body: dict[str, Any] | None = None) -> None:
        if self.stub.hangs:
            time.sleep(2)
        if self.stub.key and self.headers["Authorization"] != f"Bearer {self.stub.key}":
            self._send(401, "application/json", f'{{"error": "Unauthorized {self.headers["Authorization"]}"}}')
        elif self.path in self.stub.reply:
            self._send(*self.stub.reply[self.path])
        elif text is None and body:
            self._stream(body)
        elif text is None:
            self._send(404, "application/json", '{"detail": "Not Found"}')
        else:
            self._send(200, "application/json", text)

    def _stream(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for count in (0, *range(1, body["max_tokens"], 2), body["max_tokens"]):
            time.sleep(0.002)
            event = json.dumps(self.stub.event or {"choices": [], "usage": {"completion_tokens": count}})
            self.wfile.write(f"data: {event}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, status: int, kind: str, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Quiet(ThreadingHTTPServer):
    daemon_threads = True
    # Of 16 clients at once: those that do not fit into the default of 5 wait for seconds, or are refused.
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """Nor of clients that went away."""


@contextlib.contextmanager
def serving(stub: Stub) -> Iterator[Stub]:
    """Serve on a free port of this machine while the block runs."""
    server = Quiet(("127.0.0.1", 0), type("Handler", (Handler,), {"stub": stub}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
