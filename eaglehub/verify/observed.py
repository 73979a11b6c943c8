"""What an engine did, as the worker reports it; loaded by `worker.py`, and like it in need of vLLM alone."""

from __future__ import annotations

import sys
from typing import Any

_NEAR = 1.0  # nats; a token that much less likely is no alternative at any precision


def facts(config: Any) -> dict[str, Any]:
    """What vLLM says about itself; `config` is its own."""
    import torch
    import vllm

    model, scheduler, cache = config.model_config, config.scheduler_config, config.cache_config
    gpu = torch.cuda.is_available()
    return {
        "vllm": vllm.__version__,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "platform": "rocm" if gpu and torch.version.hip else "cuda" if gpu else "cpu",
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if gpu else [],
        "runner": "v2" if getattr(config, "use_v2_model_runner", False) else "v1",
        "dtype": str(model.dtype).removeprefix("torch."),
        "max_model_len": model.max_model_len,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "chunked_prefill": bool(getattr(scheduler, "enable_chunked_prefill", False)),
        "prefix_caching": bool(cache.enable_prefix_caching),
        "block_size": cache.block_size,
    }


def counters(llm: Any) -> dict[str, Any]:
    """Its counters of drafts so far."""
    prefix = "vllm:spec_decode_num_"
    counted: dict[str, Any] = {}
    for metric in llm.get_metrics():
        if metric.name.startswith(prefix):
            counted[metric.name.removeprefix(prefix)] = getattr(metric, "values", None) or metric.value
    return counted


def difference(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What was counted in between."""
    between: dict[str, Any] = {}
    for name, value in after.items():
        if isinstance(value, list):
            earlier = before.get(name) or [0] * len(value)
            between[name] = [int(new - old) for new, old in zip(value, earlier, strict=True)]
        else:
            between[name] = int(value - (before.get(name) or 0))
    return between


def sampling_defect(_worker: Any) -> str:
    """Whether vLLM's CPU sampler spreads the temperatures of requests over their drafted tokens.

    Up to 0.32 at least it fills a copy, and divides by memory that nobody has written to.
    """
    import torch
    from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens

    temperatures, ends = torch.tensor([0.37, 1.91]), torch.tensor([1, 3], dtype=torch.int32)
    if torch.equal(expand_batch_to_tokens(temperatures, ends, 3), temperatures[torch.tensor([0, 1, 1])]):
        return ""
    return "on a CPU this vLLM verifies drafts with uninitialised temperatures, so sampling is wrong with any drafter"


def describe(output: Any, stop: str | None) -> dict[str, Any]:
    """One of vLLM's outputs, for a prompt that was asked to stop at that string."""
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
