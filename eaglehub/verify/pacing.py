"""Keeps a fixed number of requests in an engine and times each; in the worker's process, so standard library only.

Times are taken where a user of the engine would take them: from handing a request in to receiving its tokens.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_WARM_UP_TOKENS = 8


def run_levels(engine: Any, job: dict[str, Any], prompts: list[list[int]]) -> list[dict[str, Any]]:
    """What `run_at` returns for each level of the job; the prompts, as token ids, are taken in turn."""

    def requests(count: int, max_tokens: int) -> list[Any]:
        from vllm import SamplingParams

        # All answers as long as they may be, and no prompt from the cache of the level before.
        fixed = {"temperature": 0.0, "ignore_eos": True, "skip_reading_prefix_cache": True}
        chosen = itertools.islice(itertools.cycle(prompts), count)
        return [({"prompt_token_ids": each}, SamplingParams(max_tokens=max_tokens, **fixed)) for each in chosen]

    timed = []
    for level in job["levels"]:
        concurrency, name = level["concurrency"], f"{job['name']}-{level['concurrency']}"
        run_at(engine, f"{name}-warm-up", requests(concurrency, _WARM_UP_TOKENS), concurrency)
        timed.append(run_at(engine, name, requests(level["requests"], job["max_tokens"]), concurrency))
    return timed


def run_at(engine: Any, name: str, requests: Sequence[tuple[Any, Any]], concurrency: int) -> dict[str, Any]:
    """Hand in the next request whenever one is finished.

    Args:
        engine: vLLM's `LLMEngine`.
        name: makes the requests' ids unique.
        requests: prompts with their sampling parameters.
        concurrency: how many are in the engine at once.

    Returns:
        `concurrency`, `seconds` in all, and `requests`: each one's `tokens`, and its `first_token_s` and `seconds`
        until the first and the last of them.
    """
    keys = [f"{name}-{number}" for number in range(len(requests))]
    waiting = dict(zip(keys, requests, strict=True))
    sent: dict[str, float] = {}
    timed: dict[str, dict[str, Any]] = {}
    started = time.perf_counter()
    while waiting or sent:
        for key in list(itertools.islice(waiting, concurrency - len(sent))):
            prompt, sampling = waiting.pop(key)
            sent[key] = time.perf_counter()
            engine.add_request(key, prompt, sampling)
        for output in engine.step():
            key, tokens = output.request_id, len(output.outputs[0].token_ids)
            if not tokens:
                continue
            since = time.perf_counter() - sent[key]
            first = timed.get(key, {}).get("first_token_s", since)
            timed[key] = {"tokens": tokens, "first_token_s": first, "seconds": since}
            if output.finished:
                del sent[key]
    return {
        "concurrency": concurrency,
        "seconds": time.perf_counter() - started,
        "requests": [timed[key] for key in keys],
    }
