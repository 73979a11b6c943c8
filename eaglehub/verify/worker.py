"""Runs one vLLM engine and reports what it did; the only module that imports vLLM, in a process of its own.

`python -m eaglehub.verify.worker REQUEST.json RESULT.json`, or the same by file path. It needs vLLM and the standard
library only, so the interpreter can be another than eaglehub's. Its standard input is a lifeline: when that closes, the
process group ends.

The request:

- `engine`: arguments of `vllm.LLM`; `cpu_engine`: those that count only on a CPU; `optional`: those that are dropped by
  a vLLM that does not know them; `speculative`: vLLM's `speculative_config`, or null for the target alone;
- `jobs`: batches of prompts, run in this order on the one engine. Each has a `name`, `conversations` (lists of
  messages) and `max_tokens`, and may have `one_by_one`; `clip` (cut a prompt that is too long, instead of leaving it
  out); `keep_cache` (of prefixes, from the job before); `temperature` and `samples`; `alternatives` (how many
  other tokens to look at); `json_schema`; `stop` (a stop string for each prompt) or `stop_from` (a job, from the middle
  of whose texts they are taken).

The result has `error` (null, or a message and its `stage`), `facts` about the engine, `seconds` by stage and `jobs` by
name. A job gives `seconds`, `outputs` and vLLM's `counters` for it; or the `error` with which vLLM refused it; or the
`defect` of this vLLM for which it was not run. An output, null where the prompt was left out, has `prompt_tokens`,
`cached_tokens` and `samples`. A sample has `tokens`, `text`, `stop` (the string it was asked to stop at), `finish`,
`alternatives` (for each token the others, and how many nats less likely they were) and `walk` (how many drafts had 0,
1, ... tokens accepted, and how many tokens were drafted), null where vLLM does not tell.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEAR = 1.0  # nats; a token that much less likely is no alternative at any precision
STAGE_MARK = "[eaglehub] "


def main() -> None:
    """Read the request, run it, write the result whole or not at all."""
    request_file, result_file = map(Path, sys.argv[1:])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    worker = Worker(json.loads(request_file.read_text(encoding="utf-8")))
    try:
        worker.run()
    except Exception as error:  # noqa: BLE001 - whatever vLLM raises is a result
        worker.result["error"] = {"stage": worker.stage, "message": f"{type(error).__name__}: {error}"}
    draft = result_file.with_suffix(".draft")
    draft.write_text(json.dumps(worker.result), encoding="utf-8")
    draft.replace(result_file)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # tearing an engine down takes seconds, and its children go with the process group


class Worker:
    """One engine: started, given its jobs, asked for its counters."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.stage = ""
        self.llm: Any = None
        self.tokenizer: Any = None
        self.config: Any = None
        self.result: dict[str, Any] = {"error": None, "facts": {}, "seconds": {}, "jobs": {}}

    def run(self) -> None:
        """Fill `result`; what vLLM raises passes through."""
        with self._timed("import"):
            import vllm
        with self._timed("start"):
            self.llm = vllm.LLM(**self._engine_arguments())
        self.tokenizer = self.llm.get_tokenizer()
        self.config = self.llm.llm_engine.vllm_config
        self.result["facts"] = self._facts()
        defect = _sampling_defect() if self.request["speculative"] and self._on_cpu() else ""
        for job in self.request["jobs"]:
            self._announce(f"job {job['name']}")
            if defect and job.get("temperature"):
                self.result["jobs"][job["name"]] = {"defect": defect}
                continue
            try:
                self.result["jobs"][job["name"]] = self._run_job(job)
            except (ValueError, ImportError, NotImplementedError) as error:
                if "json_schema" not in job:
                    raise
                # Not every tokenizer has a grammar; vLLM refuses before the engine takes a step.
                self.result["jobs"][job["name"]] = {"error": str(error)}

    def _engine_arguments(self) -> dict[str, Any]:
        from vllm import EngineArgs

        known = {field.name for field in dataclasses.fields(EngineArgs)}
        arguments: dict[str, Any] = {key: value for key, value in self.request["optional"].items() if key in known}
        if self._on_cpu():
            arguments |= self.request["cpu_engine"]
        if self.request["speculative"]:
            arguments["speculative_config"] = self.request["speculative"]
        arguments |= self.request["engine"]
        return arguments

    def _on_cpu(self) -> bool:
        from vllm.platforms import current_platform

        return bool(current_platform.is_cpu())

    def _run_job(self, job: dict[str, Any]) -> dict[str, Any]:
        prompts = [self._tokenize(conversation) for conversation in job["conversations"]]
        room = self._room(job["max_tokens"])
        if job.get("clip"):
            prompts = [prompt[-room:] for prompt in prompts]
        kept = [number for number, prompt in enumerate(prompts) if len(prompt) <= room]
        if not job.get("keep_cache"):
            self.llm.reset_prefix_cache()
        stops = self._stops(job, len(prompts))
        requests = [({"prompt_token_ids": prompts[number]}, _sampling(job, stops[number])) for number in kept]
        groups = [[request] for request in requests] if job.get("one_by_one") else [requests]
        before, started = self._counters(), time.monotonic()
        finished = [output for group in groups if group for output in self._generate(group)]
        seconds = time.monotonic() - started
        outputs: list[Any] = [None] * len(prompts)
        for number, output in zip(kept, finished, strict=True):
            outputs[number] = _describe(output, stops[number])
        return {"seconds": seconds, "outputs": outputs, "counters": _difference(self._counters(), before)}

    def _room(self, max_tokens: int) -> int:
        """Longest prompt that can be served, the same in every run of one task.

        Without chunked prefill the scheduler never starts a prompt that is longer than its budget, and vLLM waits
        for ever; what was asked for is the budget, since a run with a drafter may keep to that when another does not.
        """
        limits: list[int] = [self.config.model_config.max_model_len - max_tokens]
        if not self.config.scheduler_config.enable_chunked_prefill:
            limits.append(self.request["engine"].get("max_num_batched_tokens", limits[0]))
        return min(limits) - int(self.request["draft_tokens"]) - 1

    def _generate(self, group: list[Any]) -> list[Any]:
        prompts, sampling = zip(*group, strict=True)
        finished: list[Any] = self.llm.generate(list(prompts), list(sampling), use_tqdm=False)
        return finished

    def _tokenize(self, messages: list[dict[str, str]]) -> list[int]:
        """As the chat template has it; a base model without one gets the plain texts."""
        if getattr(self.tokenizer, "chat_template", None):
            from jinja2 import TemplateError

            try:
                text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            except TemplateError:  # what templates raise for a role that they do not know
                merged = _without_system(messages)
                text = self.tokenizer.apply_chat_template(merged, tokenize=False, add_generation_prompt=True)
            return list(self.tokenizer.encode(text, add_special_tokens=False))
        return list(self.tokenizer.encode("\n\n".join(message["content"] for message in messages) + "\n\n"))

    def _stops(self, job: dict[str, Any], count: int) -> list[str | None]:
        if "stop_from" in job:
            outputs = self.result["jobs"][job["stop_from"]]["outputs"]
            return [_middle(output["samples"][0]["text"]) if output else None for output in outputs[:count]]
        stops: list[str | None] = job.get("stop") or [None] * count
        return stops

    def _counters(self) -> dict[str, Any]:
        prefix = "vllm:spec_decode_num_"
        counters: dict[str, Any] = {}
        for metric in self.llm.get_metrics():
            if metric.name.startswith(prefix):
                counters[metric.name.removeprefix(prefix)] = getattr(metric, "values", None) or metric.value
        return counters

    def _facts(self) -> dict[str, Any]:
        import torch
        import vllm

        model, scheduler, cache = self.config.model_config, self.config.scheduler_config, self.config.cache_config
        gpu = torch.cuda.is_available()
        return {
            "vllm": vllm.__version__,
            "torch": torch.__version__,
            "python": sys.version.split()[0],
            "platform": "rocm" if gpu and torch.version.hip else "cuda" if gpu else "cpu",
            "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if gpu else [],
            "runner": "v2" if getattr(self.config, "use_v2_model_runner", False) else "v1",
            "dtype": str(model.dtype).removeprefix("torch."),
            "max_model_len": model.max_model_len,
            "max_num_batched_tokens": scheduler.max_num_batched_tokens,
            "chunked_prefill": bool(getattr(scheduler, "enable_chunked_prefill", False)),
            "prefix_caching": bool(cache.enable_prefix_caching),
            "block_size": cache.block_size,
        }

    @contextlib.contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        self._announce(stage)
        started = time.monotonic()
        yield
        self.result["seconds"][stage] = time.monotonic() - started

    def _announce(self, stage: str) -> None:
        # In the log, for whoever finds that it never ended.
        self.stage = stage
        print(f"{STAGE_MARK}{stage}", file=sys.stderr, flush=True)


def _sampling(job: dict[str, Any], stop: str | None) -> Any:
    from vllm import SamplingParams

    structured: dict[str, Any] = {}
    if "json_schema" in job:
        from vllm.sampling_params import StructuredOutputsParams

        structured = {"structured_outputs": StructuredOutputsParams(json=job["json_schema"])}
    return SamplingParams(
        temperature=job.get("temperature", 0.0),
        n=job.get("samples", 1),
        max_tokens=job["max_tokens"],
        logprobs=job.get("alternatives"),
        stop=[stop] if stop else None,
        **structured,
    )


def _sampling_defect() -> str:
    """Whether vLLM's CPU sampler spreads the temperatures of requests over their drafted tokens.

    Up to 0.32 at least it fills a copy, and divides by memory that nobody has written to.
    """
    import torch
    from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens

    temperatures, ends = torch.tensor([0.37, 1.91]), torch.tensor([1, 3], dtype=torch.int32)
    if torch.equal(expand_batch_to_tokens(temperatures, ends, 3), temperatures[torch.tensor([0, 1, 1])]):
        return ""
    return "on a CPU this vLLM verifies drafts with uninitialised temperatures, so sampling is wrong with any drafter"


def _describe(output: Any, stop: str | None) -> dict[str, Any]:
    return {
        "prompt_tokens": len(output.prompt_token_ids),
        "cached_tokens": output.num_cached_tokens or 0,
        "samples": [_describe_sample(sample, stop) for sample in output.outputs],
    }


def _describe_sample(sample: Any, stop: str | None) -> dict[str, Any]:
    tokens = list(sample.token_ids)
    walk = getattr(sample, "spec_decode_metrics", None)
    return {
        "tokens": tokens,
        "text": sample.text,
        "stop": stop,
        "finish": sample.finish_reason,
        "alternatives": [_near(ranks, token) for ranks, token in zip(sample.logprobs or [], tokens, strict=False)],
        "walk": {"accepted": list(walk.histogram), "drafted": walk.num_draft_tokens} if walk else None,
    }


def _near(ranks: dict[int, Any], token: int) -> list[list[float]]:
    """The other tokens that were about as likely as the chosen one, and by how many nats less."""
    chosen = ranks[token].logprob
    others = [[other, chosen - rank.logprob] for other, rank in ranks.items() if other != token]
    return [pair for pair in others if abs(pair[1]) <= _NEAR]


def _without_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """The system's words at the head of the first message after them."""
    system = [message["content"] for message in messages if message["role"] == "system"]
    first, *rest = [message for message in messages if message["role"] != "system"]
    return [{**first, "content": "\n\n".join([*system, first["content"]])}, *rest]


def _middle(text: str) -> str | None:
    """Three letters from the middle, so that a stop string falls between tokens as often as not."""
    plain = text.replace("\ufffd", "").strip()
    return plain[len(plain) // 2 : len(plain) // 2 + 3].strip() or None


def _difference(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    difference: dict[str, Any] = {}
    for name, value in after.items():
        if isinstance(value, list):
            earlier = before.get(name) or [0] * len(value)
            difference[name] = [int(new - old) for new, old in zip(value, earlier, strict=True)]
        else:
            difference[name] = int(value - (before.get(name) or 0))
    return difference


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    if os.getpgid(0) == os.getpid():  # not when a person runs this file in a shell's group
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    # The modules beside this file are not for import by their bare names.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    main()
