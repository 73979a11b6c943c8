"""Speaks to a running vLLM server: its OpenAI-compatible API, and its counters."""

from __future__ import annotations

import json
import re
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from eaglehub.errors import HubProblem, UsageProblem
from eaglehub.verify.fast import Timed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CONNECT_SECONDS = 10.0
_SHOWN = 200
# Whatever the model's own generation defaults are, which would change what is most likely.
_GREEDY = {
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
_SAMPLE = re.compile(r"^vllm:(?P<name>\w+?)(?:_total)?\{(?P<labels>[^}]*)\} (?P<value>[-+.\deE]+)", re.MULTILINE)
_POSITION = re.compile(r'position="(\d+)"')
_DRAFTED = {
    "drafts": "spec_decode_num_drafts",
    "draft_tokens": "spec_decode_num_draft_tokens",
    "requests": "request_success",
}
_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos"


class Refused(HubProblem):
    """The server found fault with this one request (status 400)."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What the server has counted so far, over all its engines and clients; `speculates` is false without drafts."""

    speculates: bool
    drafts: int
    draft_tokens: int
    requests: int
    accepted_per_position: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The token ids of a prompt, as the chat template has it, and of its answer; None where the server keeps them."""

    prompt: list[int] | None
    tokens: list[int] | None


class Server:
    """One server and one of its models.

    Args:
        base_url: `http://HOST:PORT`, with or without `/v1`.
        key: for servers that want one.
        timeout: seconds without a sign of life that an answer may take.

    Raises:
        UsageProblem: that is no address.
    """

    def __init__(self, base_url: str, key: str | None, timeout: float) -> None:
        self._name = _checked(base_url)
        self._key = key
        self._timeout = timeout
        self._client = httpx.Client(
            base_url=self._name,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None),
        )
        self.model = ""

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def choose_model(self, wanted: str | None) -> int | None:
        """Choose the model, the only one when None; returns how long its sequences may be, if the server says.

        Raises:
            UsageProblem: there are several, or not this one.
        """
        served = {str(model["id"]): model for model in self._json("GET", "/v1/models")["data"]}
        chosen = wanted or next(iter(served), "")
        if chosen not in served or (wanted is None and len(served) > 1):
            what = f"the server has no model {wanted!r}" if wanted else "the server does not have one model"
            raise UsageProblem(what, where="--model", fix=f"it has {', '.join(served) or 'none'}")
        self.model = chosen
        longest: int | None = served[chosen].get("max_model_len")
        return longest

    def version(self) -> str:
        """Of vLLM."""
        return str(self._json("GET", "/version")["version"])

    def counters(self) -> Counters:
        """As of now."""
        sums: dict[str, float] = {}
        positions: dict[int, float] = {}
        for sample in _SAMPLE.finditer(self._call("GET", "/metrics").text):
            name, value = sample["name"], float(sample["value"])
            sums[name] = sums.get(name, 0) + value
            if name == _PER_POSITION and (position := _POSITION.search(sample["labels"])):
                positions[int(position[1])] = positions.get(int(position[1]), 0) + value
        return Counters(
            speculates=_DRAFTED["drafts"] in sums,
            accepted_per_position=tuple(int(positions[position]) for position in sorted(positions)),
            **{field: int(sums.get(name, 0)) for field, name in _DRAFTED.items()},
        )

    def answer(self, messages: Sequence[dict[str, str]], max_tokens: int) -> Answer:
        """The greedy answer.

        Raises:
            Refused: the prompt is too long, or the server cannot do this.
        """
        body = {"messages": list(messages), "max_tokens": max_tokens, "return_token_ids": True, **_GREEDY}
        answer = self._json("POST", "/v1/chat/completions", {"model": self.model, **body})
        return Answer(answer.get("prompt_token_ids"), answer["choices"][0].get("token_ids"))

    def margins(self, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """By how many nats the target itself, reading the tokens instead of writing them, likes another one better.

        0 for each token that it likes best. No token is drafted for this.

        Raises:
            Refused: the server gives no log-probabilities of prompts.
        """
        body = {"prompt": [*prompt, *tokens], "max_tokens": 1, "prompt_logprobs": 1, **_GREEDY}
        scored = self._json("POST", "/v1/completions", {"model": self.model, **body})
        ranks = scored["choices"][0]["prompt_logprobs"][len(prompt) :]
        return [_margin(choices, token) for choices, token in zip(ranks, tokens, strict=True)]

    def time(self, messages: Sequence[dict[str, str]], max_tokens: int) -> Timed:
        """One streamed answer of exactly that many tokens, from a prompt that no cache knows."""
        body = {
            "messages": list(messages),
            "max_tokens": max_tokens,
            "ignore_eos": True,
            "cache_salt": uuid.uuid4().hex,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            **_GREEDY,
        }
        path = "/v1/chat/completions"
        sent, first, last, tokens = time.perf_counter(), 0.0, 0.0, 0
        for event in self._stream(path, {"model": self.model, **body}):
            if error := event.get("error"):
                raise self._problem(path, f"broke off: {str(error)[:_SHOWN]}")
            count = (event.get("usage") or {}).get("completion_tokens") or 0
            if count > tokens:
                last = time.perf_counter() - sent
                first, tokens = first or last, count
        if not tokens:
            raise self._problem(path, "streamed an answer without counting its tokens")
        return Timed(tokens, first, last)

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        response = self._call(method, path, body)
        try:
            return response.json()
        except ValueError as error:
            what = f"answered with {response.headers.get('content-type', 'something else')} in place of JSON"
            raise self._problem(path, what, "is it a vLLM server?") from error

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        try:
            response = self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise self._unreachable(path, error) from error
        self._check(path, response)
        return response

    def _stream(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of one answer."""
        try:
            with self._client.stream("POST", path, json=body) as response:
                if response.is_error:
                    response.read()
                self._check(path, response)
                for line in response.iter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        yield json.loads(line.removeprefix("data: "))
        except httpx.HTTPError as error:
            raise self._unreachable(path, error) from error
        except ValueError as error:
            raise self._problem(path, "streamed something that is no JSON") from error

    def _unreachable(self, path: str, error: httpx.HTTPError) -> HubProblem:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return self._problem("", f"cannot be reached: {error}", "is it running?")
        if isinstance(error, httpx.TimeoutException):
            return self._problem(path, f"gave no answer within {self._timeout:g} s", "--timeout")
        return self._problem(path, f"broke off: {error or type(error).__name__}")

    def _check(self, path: str, response: httpx.Response) -> None:
        status = response.status_code
        if status == httpx.codes.BAD_REQUEST:
            raise Refused(self._without_key(_message(response)), where=self._name + path)
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise self._problem(path, f"refused with {status}", "OPENAI_API_KEY holds the server's key")
        if status == httpx.codes.NOT_FOUND:
            raise self._problem(path, "is not there", "--base-url is where vLLM serves, as in http://localhost:8000")
        if not response.is_success:
            raise self._problem(path, f"failed with {status}: {_message(response)}")

    def _problem(self, path: str, what: str, fix: str = "") -> HubProblem:
        return HubProblem(self._without_key(what), where=self._name + path, fix=fix)

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _checked(base_url: str) -> str:
    parts = urlsplit(base_url.rstrip("/").removesuffix("/v1"))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageProblem(f"{base_url!r} is no address", where="--base-url", fix="as in http://localhost:8000")
    if parts.username or parts.password or parts.query:
        raise UsageProblem(
            "an address with a secret in it is shown to others", where="--base-url", fix="OPENAI_API_KEY"
        )
    return parts.geturl()


def _message(response: httpx.Response) -> str:
    try:
        error = response.json()["error"]
        text = error["message"] if isinstance(error, dict) else error
    except (ValueError, KeyError, TypeError):
        text = response.reason_phrase
    return " ".join(str(text).split())[:_SHOWN]


def _margin(choices: dict[str, Any], token: int) -> float:
    best = max(float(choice["logprob"]) for choice in choices.values())
    return best - float(choices[str(token)]["logprob"])
