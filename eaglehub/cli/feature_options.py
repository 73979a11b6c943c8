"""Options of the commands that run a target."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from eaglehub.drafter.target import Target
    from eaglehub.features import Source

_DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOptions:
    """How the target is run, and on what.

    Attributes:
        prompts: file or suite; None for the command's own choice.
        limit: prompts to take.
        features: folder that keeps the target's states; None for a temporary one.
    """

    prompts: str | None
    limit: int | None
    max_tokens: int
    depth: int
    ignore_eos: bool
    features: str | None
    engine: str
    compute_dtype: str
    feature_dtype: str
    trust_remote_code: bool
    tensor_parallel_size: int
    executor: str | None

    def source(self, target: Target) -> Source:
        """The target and how to run it."""
        from eaglehub.features import Source

        return Source(
            target=target,
            engine=self.engine,
            compute_dtype=self.compute_dtype,
            dtype=self.feature_dtype,
            trust_remote_code=self.trust_remote_code,
            tensor_parallel_size=self.tensor_parallel_size,
            executor=self.executor,
        )

    @contextlib.contextmanager
    def root(self) -> Iterator[Path]:
        """Folder of stores; a temporary one goes when the block ends."""
        if self.features:
            yield Path(self.features)
            return
        with tempfile.TemporaryDirectory(prefix="eaglehub-features-") as folder:
            yield Path(folder)


def feature_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command receives them as `running: FeatureOptions`."""
    options = [
        click.option("--prompts", metavar="FILE|SUITE", help="Prompts: a file, or a suite of eaglehub's."),
        click.option("--limit", type=click.IntRange(min=1), help="Take only the first prompts."),
        click.option(
            "--max-tokens", type=click.IntRange(min=4), default=96, show_default=True, help="Tokens of an answer."
        ),
        click.option(
            "-K", "--depth", type=click.IntRange(1, 8), default=5, show_default=True, help="Tokens to draft at a time."
        ),
        click.option("--ignore-eos", is_flag=True, help="Let answers go on to --max-tokens."),
        click.option("--features", metavar="FOLDER", help="Keep the target's states there, and find them again."),
        click.option(
            "--engine",
            type=click.Choice(("transformers", "vllm")),
            default="transformers",
            show_default=True,
            help="What runs the target.",
        ),
        click.option(
            "--compute-dtype",
            type=click.Choice(_DTYPES),
            default="float32",
            show_default=True,
            help="In which the target runs.",
        ),
        click.option(
            "--feature-dtype",
            type=click.Choice(_DTYPES[:2]),
            default="float32",
            show_default=True,
            help="In which its states are kept.",
        ),
        click.option("--trust-remote-code", is_flag=True, help="Let the target bring its own code."),
        click.option(
            "--tensor-parallel-size", type=click.IntRange(min=1), default=1, help="GPUs a target, with --engine vllm."
        ),
        click.option("--executor", type=click.Choice(("mp", "ray")), help="How vLLM spreads the target over GPUs."),
    ]

    @functools.wraps(command)
    def with_options(*args: Any, **kwargs: Any) -> None:
        own = {name: kwargs.pop(name) for name in FeatureOptions.__slots__}
        command(*args, running=FeatureOptions(**own), **kwargs)

    decorated: Callable[..., None] = with_options
    for option in reversed(options):
        decorated = option(decorated)
    return decorated
