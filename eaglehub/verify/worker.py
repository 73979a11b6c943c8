"""Runs one vLLM engine and reports what it did, in a process of its own; it and what it loads from here import vLLM.

`python -m eaglehub.verify.worker REQUEST.json RESULT.json`, or the same by file path. It needs vLLM and the standard
library only, so the interpreter can be another than eaglehub's. Its standard input is a lifeline: when that closes, the
process group ends.

The request:

- `engine`: arguments of `vllm.LLM`; `cpu_engine`: those that count only on a CPU; `optional`: those that are dropped by
  a vLLM that does not know them; `speculative`: vLLM's `speculative_config`, or null for the target alone;
- `look`: whether to look inside the drafter, see `inside`;
- `jobs`: batches of prompts, run in this order on the one engine. Each has a `name`, `conversations` (lists of
  messages) or `prompts` (lists of token ids), and `max_tokens`, and may have `one_by_one`; `clip` (cut a prompt that is
  too long, instead of leaving it out); `keep_cache` (of prefixes, from the job before); `temperature` and `samples`;
  `alternatives` (how many other tokens to look at); `json_schema`; `stop` (a stop string for each prompt) or
  `stop_from` (a job, from the middle of whose texts they are taken); `record` (into which `file` to write what passes
  between target and drafter for the shortest of the `prompts`, see `inside`). One with `levels` measures speed: each
  level has a `concurrency` and a number of `requests`, which take the conversations in turn.

The result has `error` (null, or a message and its `stage`), `facts` about the engine, `seconds` by stage, `inside`
(what the drafter's module holds, null if not looked at or unknown) and `jobs` by name. A job gives `seconds`, `outputs`
and vLLM's `counters` for it; or the `error` with which vLLM refused it; or the `defect` of this vLLM for which it was
not run; with `record` also the numbers of the prompts `recorded`. One with `levels` gives what `pacing.run_at` returns
for each of them. An output, null where the prompt was left out, has `prompt_tokens`, `cached_tokens` and `samples`. A
sample has `tokens`, `text`, `stop` (the string it was asked to stop at), `finish`, `alternatives` (for each token the
others, and how many nats less likely they were) and `walk` (how many drafts had 0, 1, ... tokens accepted, and how many
tokens were drafted), null where vLLM does not tell.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
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
        self.observed = beside("observed")
        self.inside: Any = None
        self.result: dict[str, Any] = {"error": None, "facts": {}, "seconds": {}, "inside": None, "jobs": {}}

    def run(self) -> None:
        """Fill `result`; what vLLM raises passes through."""
        with self._timed("import"):
            import vllm
        with self._timed("start"):
            self.llm = vllm.LLM(**self._engine_arguments())
        self.tokenizer = self.llm.get_tokenizer()
        self.config = self.llm.llm_engine.vllm_config
        self.result["facts"] = self.observed.facts(self.config)
        if self.request["look"]:
            with self._timed("look"):
                self.inside = beside("inside").Inside(self.llm)
                self.result["inside"] = self.inside.describe()
        defect = ""
        if self.request["speculative"] and self._on_cpu():
            defect = self.llm.collective_rpc(self.observed.sampling_defect)[0]
        for job in self.request["jobs"]:
            self._announce(f"job {job['name']}")
            if defect and job.get("temperature"):
                self.result["jobs"][job["name"]] = {"defect": defect}
                continue
            try:
                run = self._run_levels if "levels" in job else self._run_job
                self.result["jobs"][job["name"]] = run(job)
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
        prompts = job.get("prompts") or [self._tokenize(conversation) for conversation in job["conversations"]]
        room = self._room(job["max_tokens"])
        if job.get("clip"):
            prompts = [prompt[-room:] for prompt in prompts]
        kept = [number for number, prompt in enumerate(prompts) if len(prompt) <= room]
        if not job.get("keep_cache"):
            self.llm.reset_prefix_cache()
        stops = self._stops(job, len(prompts))
        watched = self._watch(job, {number: prompts[number] for number in kept})
        requests = [
            ({"prompt_token_ids": prompts[number]}, _sampling(job, stops[number], whole=number in watched))
            for number in kept
        ]
        groups = [[request] for request in requests] if job.get("one_by_one") else [requests]
        before, started = self.observed.counters(self.llm), time.monotonic()
        finished = [output for group in groups if group for output in self._generate(group)]
        seconds = time.monotonic() - started
        outputs: list[Any] = [None] * len(prompts)
        for number, output in zip(kept, finished, strict=True):
            outputs[number] = self.observed.describe(output, stops[number])
        result = {
            "seconds": seconds,
            "outputs": outputs,
            "counters": self.observed.difference(self.observed.counters(self.llm), before),
        }
        return result | ({"recorded": self.inside.save(job["record"]["file"])} if watched else {})

    def _watch(self, job: dict[str, Any], prompts: dict[int, list[int]]) -> dict[int, list[int]]:
        """Begin to record the shortest prompts, if the job asks for it and this vLLM can; returns them."""
        if "record" not in job:
            return {}
        shortest = sorted(prompts.items(), key=lambda prompt: len(prompt[1]))
        chosen = dict(shortest[: job["record"]["prompts"]])
        return chosen if self.inside.watch(chosen) else {}

    def _run_levels(self, job: dict[str, Any]) -> dict[str, Any]:
        tokenized = map(self._tokenize, job["conversations"])
        prompts = [prompt for prompt in tokenized if len(prompt) <= self._room(job["max_tokens"])]
        started = time.monotonic()
        levels = beside("pacing").run_levels(self.llm.llm_engine, job, prompts) if prompts else []
        return {"seconds": time.monotonic() - started, "levels": levels}

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


def beside(name: str) -> Any:
    """The module of that name in this file's folder, which need not be part of a package under this interpreter."""
    spec = importlib.util.spec_from_file_location(f"eaglehub_{name}", Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sampling(job: dict[str, Any], stop: str | None, *, whole: bool) -> Any:
    """`whole` asks for a prompt's states even where another's are cached."""
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
        skip_reading_prefix_cache=whole or None,
        **structured,
    )


def _without_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """The system's words at the head of the first message after them."""
    system = [message["content"] for message in messages if message["role"] == "system"]
    first, *rest = [message for message in messages if message["role"] != "system"]
    return [{**first, "content": "\n\n".join([*system, first["content"]])}, *rest]


def _middle(text: str) -> str | None:
    """Three letters from the middle, so that a stop string falls between tokens as often as not."""
    plain = text.replace("\ufffd", "").strip()
    return plain[len(plain) // 2 : len(plain) // 2 + 3].strip() or None


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    if os.getpgid(0) == os.getpid():  # not when a person runs this file in a shell's group
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    # The modules beside this file are not for import by their bare names.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    main()
