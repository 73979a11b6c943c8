"""`eaglehub verify`: a drafter in a real vLLM."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.cli.engine_options import engine_options
from eaglehub.cli.options import OutputFile, ReportOptions, cases_report_options
from eaglehub.cli.output import finish, say
from eaglehub.cli.places import existing_folder, fetched, is_cached
from eaglehub.errors import EnvironmentProblem, UsageProblem
from eaglehub.prompts import load_prompts
from eaglehub.verify.baseline import read_baseline
from eaglehub.verify.checks import choose_checks
from eaglehub.verify.report import REPORT_FILE
from eaglehub.verify.request import CONCURRENCIES, EngineOptions
from eaglehub.verify.robust import Gates
from eaglehub.verify.speculating import Thresholds
from eaglehub.verify.verify import Task
from eaglehub.verify.verify import verify as run_verification

if TYPE_CHECKING:
    from eaglehub.verify.process import Interpreter

_COUNT = click.IntRange(min=1)


def _rates(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[int, float]:
    """I=R: the rate wanted at a draft position."""
    try:
        return {int(position): float(rate) for position, rate in (text.split("=") for text in values)}
    except ValueError as error:
        raise click.BadParameter(f"{' '.join(values)!r} is not I=R, as in 0=0.3") from error


def _ratios(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """SUITE=R: the ratio to plain chat wanted of a suite."""
    try:
        return {suite: float(ratio) for suite, ratio in (text.split("=") for text in values)}
    except ValueError as error:
        raise click.BadParameter(f"{' '.join(values)!r} is not SUITE=R, as in long=0.8") from error


def _speedups(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[int, float]:
    """R: the speedup wanted at every concurrency that is measured; C=R: at one of them."""
    wanted: dict[int, float] = {}
    try:
        for text in values:
            concurrency, equals, ratio = text.rpartition("=")
            wanted |= dict.fromkeys([int(concurrency)] if equals else CONCURRENCIES, float(ratio))
    except ValueError as error:
        raise click.BadParameter(f"{' '.join(values)!r} is neither R nor C=R, as in 1.5 or 4=1.2") from error
    if not all(0 < ratio < math.inf for ratio in wanted.values()):
        raise click.BadParameter("a speedup is a positive number")
    if unknown := wanted.keys() - set(CONCURRENCIES):
        measured = ", ".join(map(str, CONCURRENCIES))
        raise click.BadParameter(f"concurrency {min(unknown)} is not measured; {measured} are")
    return wanted


def _folder(text: str) -> Path:
    return existing_folder(fetched(text)).absolute()


@click.command()
@click.argument("drafter", required=False)
@click.option("--target", metavar="FOLDER", help="The target model, with its weights.")
@click.option("--base-url", metavar="URL", help="Check the vLLM server that runs there, instead of DRAFTER.")
@click.option("--model", metavar="NAME", help="The server's model, where it has several.")
@click.option("--compare", metavar="DRAFTER", help="Another drafter, which it must not be worse than.")
@click.option(
    "--prompts",
    default="mixed",
    show_default=True,
    metavar="FILE",
    help="A file of prompts (JSONL of messages, ShareGPT, SPEED-Bench, MT-Bench, plain text), or a built-in suite.",
)
@click.option("--limit", type=_COUNT, default=24, show_default=True, help="Use the first N prompts.")
@click.option("--max-tokens", type=_COUNT, default=96, show_default=True, help="Tokens to generate for each prompt.")
@click.option("--min-acceptance-length", type=click.FloatRange(min=1), metavar="L", help="Fail below this.")
@click.option(
    "--min-position-rate",
    "position_rates",
    multiple=True,
    metavar="I=R",
    callback=_rates,
    help="Fail if fewer drafts have position I (from 0) accepted.",
)
@click.option("--baseline", metavar="REPORT", help="Fail if it is worse than in this earlier report.")
@click.option("--robust", is_flag=True, help="Measure long contexts, other templates and odd system prompts as well.")
@click.option(
    "--min-ratio",
    "min_ratios",
    multiple=True,
    metavar="SUITE=R",
    callback=_ratios,
    help="Fail below this ratio of a suite's acceptance length to plain chat's; implies --robust.",
)
@click.option("--fast", is_flag=True, help="Measure the speed with and without it at 1, 4 and 16 users as well.")
@click.option(
    "--min-speedup",
    "min_speedups",
    multiple=True,
    metavar="[C=]R",
    callback=_speedups,
    help="Fail below this ratio of speeds (at C users only); implies --fast.",
)
@click.option("--select", multiple=True, metavar="CHECK", help="Run only this check or family.")
@click.option("--ignore", multiple=True, metavar="CHECK", help="Leave this check or family out.")
@click.option("--no-write", is_flag=True, help=f"Do not write {REPORT_FILE} into the drafter's folder.")
@click.option("--include-text", is_flag=True, help="Put prompts and answers into the report.")
@engine_options
@cases_report_options
def verify(
    drafter: str | None,
    target: str | None,
    base_url: str | None,
    model: str | None,
    compare: str | None,
    prompts: str,
    limit: int,
    max_tokens: int,
    min_acceptance_length: float | None,
    position_rates: dict[int, float],
    baseline: str | None,
    robust: bool,
    min_ratios: dict[str, float],
    fast: bool,
    min_speedups: dict[int, float],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    no_write: bool,
    include_text: bool,
    engine: EngineOptions,
    interpreter: Interpreter,
    options: ReportOptions,
) -> None:
    """Run DRAFTER in a real vLLM: is the output the target's own, and are drafted tokens accepted?

    With --base-url, a server that runs already is asked instead; OPENAI_API_KEY holds its key, if it wants one.

    \b
    Examples:
      eaglehub verify drafter/ --target target/
      eaglehub verify drafter/ --target target/ --prompts questions.jsonl --min-acceptance-length 2.5
      eaglehub verify --base-url http://localhost:8000 --fast
    """
    conversations = load_prompts(prompts, limit)
    if base_url:
        from eaglehub.cli.running_server import check_running

        thresholds = Thresholds(min_acceptance_length, position_rates)
        running = check_running(base_url, model, conversations, max_tokens, thresholds, fast, interpreter.timeout)
        finish(running, options)
    if not (drafter and target) or model:
        raise UsageProblem("DRAFTER and --target are needed", fix="or --base-url, perhaps with --model")
    earlier = (
        read_baseline(Path(baseline), conversations, max_tokens, engine.num_speculative_tokens) if baseline else None
    )
    asked = {"fast": fast or min_speedups, "robust": robust or min_ratios, "speculating.compare": compare}
    task = Task(
        drafter=_folder(drafter),
        target=_folder(target),
        other=_folder(compare) if compare else None,
        prompts=conversations,
        max_tokens=max_tokens,
        checks=choose_checks(select, ignore, [check for check, wanted in asked.items() if wanted]),
        thresholds=Thresholds(min_acceptance_length, position_rates, earlier.acceptance if earlier else None),
        baseline=earlier,
        gates=Gates(min_ratios, earlier.robust if earlier else {}),
        min_speedups=min_speedups,
        options=engine,
        interpreter=interpreter,
        include_text=include_text,
    )
    if not no_write and is_cached(task.drafter):
        say("the drafter is the Hub's copy in the cache: no report is written into it")
        no_write = True
    if not no_write and not os.access(task.drafter, os.W_OK):
        raise EnvironmentProblem("no permission to write the report there", where=drafter, fix="--no-write")
    report = run_verification(task, say)
    beside = () if no_write else (OutputFile("json", task.drafter / REPORT_FILE),)
    finish(report, replace(options, outputs=(*beside, *options.outputs)))
