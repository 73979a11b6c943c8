"""What the engine is asked to do: its configuration and its jobs, as the worker's JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UsageProblem
from eaglehub.prompts import load_suite

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from eaglehub.drafter.target import Target
    from eaglehub.prompts import Conversation

CONCURRENCIES = (1, 4, 16)
MIN_TIMED = 8
SAMPLES = 512
SAMPLED_TOKENS = 4
# A schema with choices at every step and an end: what a weak model fills in is still bounded.
JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "topic": {"type": "string", "enum": ["history", "nature", "technology", "everyday life"]},
        "difficulty": {"type": "integer", "enum": [1, 2, 3, 4, 5]},
        "needs_sources": {"type": "boolean"},
        "keywords": {
            "type": "array",
            "items": {"type": "string", "pattern": "^[a-z]{3,10}$"},
            "minItems": 2,
            "maxItems": 3,
        },
    },
    "required": ["topic", "difficulty", "needs_sources", "keywords"],
    "additionalProperties": False,
}
_MODEL_LEN = 4096
_FEW = 4
_SHORT_TOKENS = 48
_SAMPLING_PROMPTS = 4
_RECORDED_PROMPTS = 16
_TOP = 20
_OTHER_SEED = 1_000_003
# Small budgets, so that a few long prompts must be prefilled in pieces; see the lossless checks.
_BATCH_BUDGET = {"max_num_seqs": 64, "max_num_batched_tokens": 1024}
# On a CPU, compiling takes longer than it saves, and vLLM would take nearly all memory for its cache.
_CPU = {"enforce_eager": True, "kv_cache_memory_bytes": 1 << 30}
_RESERVED = {
    "model": "--target",
    "speculative_config": "--num-speculative-tokens and DRAFTER",
    "per_request_spec_decode_metrics": "nothing: it is always on",
    "disable_log_stats": "nothing: its counters are what is measured",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How vLLM is to be run; None leaves a choice to vLLM.

    Attributes:
        max_model_len: positions of the longest sequence; None means the target's, at most 4096.
        extra: any other argument of `vllm.LLM`.
    """

    num_speculative_tokens: int = 5
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    distributed_executor_backend: str | None = None
    dtype: str = "auto"
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None
    attention_backend: str | None = None
    trust_remote_code: bool = False
    seed: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse arguments that would make it another run than the report says."""
        for key in self.extra.keys() & _RESERVED.keys():
            raise UsageProblem(f"{key} cannot be set", where="--engine-arg", fix=f"use {_RESERVED[key]}")

    def to_json(self) -> dict[str, Any]:
        """What was asked for, as the report shows it; an extra argument's path or text is not shown."""
        shown = {name: getattr(self, name) for name in self.__slots__ if name != "extra"}
        return {**shown, "extra": sorted(self.extra)}


def model_len(options: EngineOptions, target: Target) -> int:
    """Positions of the longest sequence."""
    return options.max_model_len or min(target.max_position_embeddings or _MODEL_LEN, _MODEL_LEN)


def engine_request(
    options: EngineOptions, folder: Path, target: Target, jobs: Sequence[Mapping[str, Any]], drafter: Path | None
) -> dict[str, Any]:
    """The worker's request for the target in `folder`, alone or with a drafter."""
    engine = {
        "model": str(folder),
        "dtype": options.dtype,
        # The samples of two runs are compared, so they must not be drawn alike.
        "seed": options.seed + _OTHER_SEED if drafter else options.seed,
        "trust_remote_code": options.trust_remote_code,
        "tensor_parallel_size": options.tensor_parallel_size,
        "pipeline_parallel_size": options.pipeline_parallel_size,
        "distributed_executor_backend": options.distributed_executor_backend,
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "attention_backend": options.attention_backend,
        "max_model_len": model_len(options, target),
        "disable_log_stats": False,
        "enable_prefix_caching": True,
        **_BATCH_BUDGET,
    }
    sized = options.extra.keys() & {"kv_cache_memory_bytes"} or options.gpu_memory_utilization
    return {
        "engine": {key: value for key, value in engine.items() if value is not None} | dict(options.extra),
        "cpu_engine": {key: value for key, value in _CPU.items() if key != "kv_cache_memory_bytes" or not sized},
        "optional": {"per_request_spec_decode_metrics": "summary"} if drafter else {},
        "speculative": _speculative(options, drafter) if drafter else None,
        "draft_tokens": options.num_speculative_tokens,
        "look": False,
        "jobs": list(jobs),
    }


def look_inside(request: dict[str, Any], record: Path) -> None:
    """Let the worker look inside the drafter, and record what passes to and fro in the batch."""
    request["look"] = True
    for job in request["jobs"]:
        if job["name"] == "batch":
            job["record"] = {"file": str(record), "prompts": _RECORDED_PROMPTS}


def _speculative(options: EngineOptions, drafter: Path) -> dict[str, Any]:
    return {"method": "eagle3", "model": str(drafter), "num_speculative_tokens": options.num_speculative_tokens}


def build_jobs(names: Collection[str], prompts: Sequence[Conversation], max_tokens: int) -> list[dict[str, Any]]:
    """The jobs of these names, in the order in which the worker must run them.

    Args:
        names: of `batch`, `single`, `long`, `repeat`, `stop`, `json`, `sampling`, `fast`.
        prompts: the user's; long prompts are always eaglehub's own.
        max_tokens: tokens to generate for each of them.
    """
    messages = [list(prompt.prompt) for prompt in prompts]
    few, long = messages[:_FEW], [list(prompt.prompt) for prompt in load_suite("long")]
    short = min(max_tokens, _SHORT_TOKENS)
    jobs: list[dict[str, Any]] = [
        {"name": "batch", "conversations": messages, "max_tokens": max_tokens, "alternatives": 2},
        {"name": "single", "conversations": few, "max_tokens": short, "alternatives": 2, "one_by_one": True},
        {"name": "long", "conversations": long, "max_tokens": _SHORT_TOKENS, "alternatives": 2, "clip": True},
        {
            "name": "repeat",
            "conversations": long,
            "max_tokens": _SHORT_TOKENS,
            "alternatives": 2,
            "clip": True,
            "keep_cache": True,
        },
        {"name": "stop", "conversations": few, "max_tokens": max_tokens, "alternatives": 2, "stop_from": "batch"},
        {
            "name": "json",
            "conversations": few,
            "max_tokens": 2 * _SHORT_TOKENS,
            "alternatives": _TOP,
            "json_schema": JSON_SCHEMA,
        },
        {
            "name": "sampling",
            "conversations": messages[:_SAMPLING_PROMPTS],
            "max_tokens": SAMPLED_TOKENS,
            "temperature": 1.0,
            "samples": SAMPLES // min(_SAMPLING_PROMPTS, len(messages)),
        },
        {
            "name": "fast",
            "conversations": messages,
            "max_tokens": max_tokens,
            "levels": [{"concurrency": each, "requests": max(MIN_TIMED, 2 * each)} for each in CONCURRENCIES],
        },
    ]
    return [job for job in jobs if job["name"] in names]
