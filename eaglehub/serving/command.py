"""Command lines of servers, from a drafter's description."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How a drafter is to be served.

    Attributes:
        drafter: its folder or repository, as the server is to be given it.
        target: the target's, likewise.
        revision, target_revision: commits, branches or tags on the Hub; None for the default branch.
        max_model_len: positions of the longest sequence; None for the target's.
    """

    drafter: str
    target: str
    revision: str | None = None
    target_revision: str | None = None
    num_speculative_tokens: int = 5
    tensor_parallel_size: int = 1
    max_model_len: int | None = None


@dataclass(frozen=True, slots=True)
class ServeCommand:
    """A command line, and what one should know who runs it."""

    argv: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def line(self) -> str:
        """For a POSIX shell."""
        return shlex.join(self.argv)


def serve_command(engine: str, drafter: Drafter, target: Target | None, service: Service) -> ServeCommand:
    """The command that serves the drafter.

    Args:
        engine: one of `SERVERS`.
        drafter: what the drafter is.
        target: the target's facts; None where only its name is known.
        service: how it is to be served.

    Raises:
        UsageProblem: the drafter cannot be split over that many GPUs.
    """
    _check_split(drafter, service.tensor_parallel_size)
    argv = SERVERS[engine](drafter, target, service)
    return ServeCommand(tuple(argv), tuple(_notes(engine, drafter, target, service)))


def _vllm(drafter: Drafter, target: Target | None, service: Service) -> Iterator[str]:
    config: dict[str, Any] = {
        # vLLM guesses the method from the folder's name.
        "method": "eagle3",
        "model": service.drafter,
        "num_speculative_tokens": service.num_speculative_tokens,
    }
    if service.revision:
        config["revision"] = service.revision
    if drafter.parallel_drafting:
        config["parallel_drafting"] = True
    if positions := _short_positions(drafter, target, service):
        config["max_model_len"] = positions
    yield from ("vllm", "serve", service.target)
    yield from _option("--revision", service.target_revision)
    yield from ("--speculative-config", json.dumps(config))
    # An EAGLE drafter is split as the target is.
    yield from _option("--tensor-parallel-size", service.tensor_parallel_size, service.tensor_parallel_size > 1)
    yield from _option("--max-model-len", service.max_model_len)


def _sglang(drafter: Drafter, target: Target | None, service: Service) -> Iterator[str]:
    yield from ("python", "-m", "sglang.launch_server", "--model-path", service.target)
    yield from _option("--revision", service.target_revision)
    yield from ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", service.drafter)
    yield from _option("--speculative-draft-model-revision", service.revision)
    # A chain, not a tree; its root, the target's own token, counts.
    yield from _option("--speculative-num-steps", service.num_speculative_tokens)
    yield from _option("--speculative-eagle-topk", 1)
    yield from _option("--speculative-num-draft-tokens", service.num_speculative_tokens + 1)
    # Otherwise the drafter is taken to be quantised like the target.
    plain = target is not None and target.text.get("quantization_config") and not drafter.quantized
    yield from _option("--speculative-draft-model-quantization", "unquant", bool(plain))
    yield from _option("--tp-size", service.tensor_parallel_size, service.tensor_parallel_size > 1)
    yield from _option("--context-length", service.max_model_len)


SERVERS: dict[str, Callable[[Drafter, Target | None, Service], Iterator[str]]] = {"vllm": _vllm, "sglang": _sglang}
"""The engines whose command line is known."""


def _option(name: str, value: object, wanted: bool = True) -> tuple[str, ...]:
    return (name, str(value)) if wanted and value is not None else ()


def _check_split(drafter: Drafter, ways: int) -> None:
    """As engines split layers: all must divide, but key/value heads may be repeated instead."""
    heads, pairs = drafter.num_attention_heads, drafter.num_key_value_heads
    divisions = {
        f"{heads} attention heads": (heads, ways),
        f"{pairs} key/value heads": (max(pairs, ways), min(pairs, ways)),
        f"an MLP of {drafter.intermediate_size}": (drafter.intermediate_size, ways),
    }
    for what, (size, by) in divisions.items():
        if size % by:
            raise UsageProblem(f"the drafter has {what}: no {ways} equal parts", where="--tensor-parallel-size")


def _length(target: Target | None, service: Service) -> int | None:
    """Positions of the longest sequence that will be served."""
    return service.max_model_len or (target.max_position_embeddings if target else None)


def _short_positions(drafter: Drafter, target: Target | None, service: Service) -> int | None:
    """The drafter's positions where sequences may be longer."""
    positions, length = drafter.max_position_embeddings, _length(target, service)
    return positions if positions and length and positions < length else None


def _notes(engine: str, drafter: Drafter, target: Target | None, service: Service) -> Iterator[str]:
    if positions := _short_positions(drafter, target, service):
        beyond = "vLLM's V1 runner drafts nothing then, V2 drafts on" if engine == "vllm" else "SGLang may refuse that"
        yield f"sequences may grow beyond the drafter's {positions} positions: {beyond}"
    if target is None:
        yield f"{service.target} was not looked at: whether the drafter fits it is not known"
    if target is None and service.max_model_len is None and drafter.max_position_embeddings:
        yield f"if it serves more than the drafter's {drafter.max_position_embeddings} positions, give --max-model-len"
    if drafter.quantized:
        yield "the drafter is quantised, which the engine loads in few formats"
