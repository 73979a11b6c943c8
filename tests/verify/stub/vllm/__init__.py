"""As much of vLLM as the worker uses: letters are tokens, and an answer is the prompt read backwards."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from jinja2 import TemplateError

if os.environ.get("STUB") == "missing":
    raise ModuleNotFoundError("No module named 'vllm'")

__version__ = "0.stub"


@dataclass
class EngineArgs:
    model: str = ""
    per_request_spec_decode_metrics: str = "none"


class SamplingParams:
    ignore_eos: bool
    max_tokens: int

    def __init__(self, **params: Any) -> None:
        self.__dict__ |= params


class Tokenizer:
    chat_template = "yes"

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> str:
        if any(message["role"] == "system" for message in messages):
            raise TemplateError("System role not supported")
        return "".join(f"{message['role'][0]}:{message['content']};" for message in messages)

    def encode(self, text: str, **_: Any) -> list[int]:
        return [ord(letter) for letter in text]


class Engine:
    """One token a step for each request."""

    def __init__(self, **config: Any) -> None:
        self.vllm_config = SimpleNamespace(**config)
        self.requests: dict[str, list[Any]] = {}

    def add_request(self, key: str, prompt: Any, params: SamplingParams) -> None:
        assert params.ignore_eos
        assert prompt["prompt_token_ids"]
        self.requests[key] = [params.max_tokens, 0]

    def step(self) -> list[Any]:
        outputs = []
        for key, (most, done) in list(self.requests.items()):
            sample = SimpleNamespace(token_ids=[0] * (done + 1))
            outputs.append(SimpleNamespace(request_id=key, outputs=[sample], finished=done + 1 == most))
            self.requests[key][1] += 1
            if done + 1 == most:
                del self.requests[key]
        return outputs


class LLM:
    def __init__(self, **arguments: Any) -> None:
        if os.environ.get("STUB") == "hang":
            print("up", flush=True)
            time.sleep(600)
        if os.environ.get("STUB") == "broken":
            raise RuntimeError("out of memory\nsecond line")
        self.arguments = arguments
        self.calls: list[int] = []
        self.accepted = 0
        self.llm_engine = Engine(
            model_config=SimpleNamespace(max_model_len=arguments["max_model_len"], dtype="torch.float32"),
            scheduler_config=SimpleNamespace(
                max_num_batched_tokens=64, enable_chunked_prefill=arguments.get("enable_chunked_prefill", True)
            ),
            cache_config=SimpleNamespace(enable_prefix_caching=True, block_size=16),
        )

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer()

    def reset_prefix_cache(self) -> None:
        self.calls = []

    def get_metrics(self) -> list[Any]:
        prefix = "vllm:spec_decode_num_"
        return [
            SimpleNamespace(name=f"{prefix}drafts", value=self.accepted),
            SimpleNamespace(name=f"{prefix}accepted_tokens_per_pos", values=[self.accepted, 0]),
            SimpleNamespace(name="vllm:other", value=1),
        ]

    def generate(self, prompts: list[Any], params: list[Any], use_tqdm: bool) -> list[Any]:
        self.calls.append(len(prompts))
        self.accepted += len(prompts)
        return [self.answer(prompt["prompt_token_ids"], each) for prompt, each in zip(prompts, params, strict=True)]

    def answer(self, prompt: list[int], params: Any) -> Any:
        tokens = prompt[::-1][: params.max_tokens]
        ranks = [{token: rank(0.0), 1: rank(-0.25), 2: rank(-5.0)} for token in tokens]
        sample = SimpleNamespace(
            token_ids=tokens,
            text="".join(map(chr, tokens)),
            finish_reason="length",
            logprobs=ranks if params.logprobs else None,
            spec_decode_metrics=SimpleNamespace(histogram=[3, 1], num_draft_tokens=8),
        )
        return SimpleNamespace(prompt_token_ids=prompt, num_cached_tokens=len(self.calls), outputs=[sample] * params.n)


def rank(logprob: float) -> Any:
    return SimpleNamespace(logprob=logprob)
