"""Options of `eaglehub finetune` that say how to train, and on what."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from eaglehub.finetune.augment import KINDS
from eaglehub.finetune.sets import DEFAULT, RATE, SETS
from eaglehub.finetune.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What to train on, and where.

    Attributes:
        settings: how.
        held_out: file or suite; None for a part of the prompts.
        augment: kinds of changed conversations.
        context_tokens: length of a long context.
        device: None for a GPU where there is one.
    """

    settings: Settings
    held_out: str | None
    augment: tuple[str, ...]
    context_tokens: int
    device: str | None


def _kinds(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    kinds = tuple(value.split(",")) if value else ()
    for kind in kinds:
        if kind not in KINDS:
            raise click.BadParameter(f"{kind!r} is none of {', '.join(KINDS)}")
    return kinds


def training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command receives them as `training: TrainingOptions`."""
    count, rate = click.IntRange(min=1), click.FloatRange(min=0, min_open=True)
    options = [
        click.option(
            "--trainable", type=click.Choice(tuple(SETS)), default=DEFAULT, show_default=True, help="What is trained."
        ),
        click.option(
            "--ttt-steps", type=click.IntRange(1, 16), default=3, show_default=True, help="Draft steps to unroll."
        ),
        click.option(
            "--lr", "rate", type=rate, default=RATE, show_default=True, help="Peak rate; that of norms is ten times it."
        ),
        click.option("--batch-tokens", type=count, default=2048, show_default=True, help="Tokens a step."),
        click.option("--epochs", type=count, help="Passes over the data.  [default: 1, unless --max-steps is given]"),
        click.option("--max-steps", type=count, help="Steps at most."),
        click.option(
            "--warmup", type=click.FloatRange(0, 1), default=0.05, show_default=True, help="Share of rising steps."
        ),
        click.option("--clip", type=rate, default=1.0, show_default=True, help="Largest norm of a gradient."),
        click.option(
            "--anchor", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Pull towards the start."
        ),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the data's order."),
        click.option(
            "--dtype",
            type=click.Choice(("float32", "bfloat16")),
            default="float32",
            show_default=True,
            help="Of the drafter's matrix products.",
        ),
        click.option("--recompute", is_flag=True, help="Need less memory, and a little more time."),
        click.option(
            "--evaluate-every", type=count, default=50, show_default=True, help="Steps to an evaluation and checkpoint."
        ),
        click.option("--patience", type=count, default=8, show_default=True, help="Evaluations without a gain."),
        click.option("--held-out", metavar="FILE|SUITE", help="Prompts to judge by.  [default: a tenth of --prompts]"),
        click.option(
            "--augment", callback=_kinds, metavar="KIND,...", help=f"Change a part of the prompts: {', '.join(KINDS)}."
        ),
        click.option("--context-tokens", type=count, default=1536, show_default=True, help="Length of a long context."),
        click.option("--device", metavar="NAME", help="cpu, cuda, ...  [default: a GPU where there is one]"),
    ]

    @functools.wraps(command)
    def with_options(*args: Any, **kwargs: Any) -> None:
        own = {name: kwargs.pop(name) for name in Settings.__slots__}
        own["epochs"] = own["epochs"] or (None if own["max_steps"] else 1)
        others = {name: kwargs.pop(name) for name in TrainingOptions.__slots__ if name != "settings"}
        command(*args, training=TrainingOptions(settings=Settings(**own), **others), **kwargs)

    decorated: Callable[..., None] = with_options
    for option in reversed(options):
        decorated = option(decorated)
    return decorated
