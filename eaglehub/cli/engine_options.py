"""Options of `eaglehub verify` that say how vLLM is run."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import click

from eaglehub.verify.process import Interpreter, find_interpreter
from eaglehub.verify.request import EngineOptions

if TYPE_CHECKING:
    from collections.abc import Callable

_COUNT = click.IntRange(min=1)


def _pairs(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE, the value as JSON where it is that."""
    pairs: dict[str, Any] = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{text!r} is not KEY=VALUE")
        try:
            pairs[key] = json.loads(value)
        except json.JSONDecodeError:
            pairs[key] = value
    return pairs


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add vLLM's options; the command gets `engine: EngineOptions` and `interpreter: Interpreter`."""

    @click.option("--num-speculative-tokens", type=_COUNT, default=5, show_default=True, help="Tokens to draft a step.")
    @click.option(
        "--tensor-parallel-size", type=_COUNT, default=1, show_default=True, help="GPUs to split layers over."
    )
    @click.option("--pipeline-parallel-size", type=_COUNT, default=1, show_default=True, help="Stages to split into.")
    @click.option("--distributed-executor-backend", type=click.Choice(("mp", "ray")), help="As in vLLM.")
    @click.option("--dtype", default="auto", show_default=True, help="As in vLLM; the drafter follows the target.")
    @click.option("--max-model-len", type=_COUNT, help="As in vLLM.  [default: the target's, at most 4096]")
    @click.option("--gpu-memory-utilization", type=click.FloatRange(0, 1, min_open=True), help="As in vLLM.")
    @click.option("--attention-backend", metavar="NAME", help="As in vLLM.")
    @click.option("--runner", type=click.Choice(("auto", "v1", "v2")), default="auto", help="vLLM's model runner.")
    @click.option("--engine-arg", "extra", multiple=True, metavar="KEY=VALUE", callback=_pairs, help="Any other one.")
    @click.option("--trust-remote-code", is_flag=True, help="Let a model run its own code.")
    @click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all random choices.")
    @click.option("--python", metavar="INTERPRETER", help="The one that has vLLM.  [default: eaglehub's own]")
    @click.option(
        "--timeout", type=click.FloatRange(0, min_open=True), default=1800, show_default=True, help="Seconds an engine."
    )
    @functools.wraps(command)
    def with_options(
        *args: Any,
        num_speculative_tokens: int,
        tensor_parallel_size: int,
        pipeline_parallel_size: int,
        distributed_executor_backend: str | None,
        dtype: str,
        max_model_len: int | None,
        gpu_memory_utilization: float | None,
        attention_backend: str | None,
        runner: str,
        extra: dict[str, Any],
        trust_remote_code: bool,
        seed: int,
        python: str | None,
        timeout: float,
        **kwargs: Any,
    ) -> None:
        engine = EngineOptions(
            num_speculative_tokens=num_speculative_tokens,
            tensor_parallel_size=tensor_parallel_size,
            pipeline_parallel_size=pipeline_parallel_size,
            distributed_executor_backend=distributed_executor_backend,
            dtype=dtype,
            max_model_len=max_model_len,
            gpu_memory_utilization=gpu_memory_utilization,
            attention_backend=attention_backend,
            trust_remote_code=trust_remote_code,
            seed=seed,
            extra=extra,
        )
        interpreter = Interpreter(find_interpreter(python), runner, timeout)
        command(*args, engine=engine, interpreter=interpreter, **kwargs)

    return with_options
