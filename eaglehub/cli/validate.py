"""`eaglehub validate`: what is wrong with drafters, told before anything is served."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eaglehub.cli.options import ReportOptions, located_report_options, reading_options
from eaglehub.cli.output import finish, warn
from eaglehub.cli.places import readable, target_facts
from eaglehub.drafter.target import read_target
from eaglehub.engines import load_engine
from eaglehub.validate import CATALOGUE, Settings, judge, matching
from eaglehub.validate.report import FAIL_ON, ValidateReport

if TYPE_CHECKING:
    from eaglehub.reading import Answers


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@reading_options
@click.option(
    "--engine",
    "engine_name",
    default="vllm",
    show_default=True,
    metavar="NAME[==VERSION]",
    help="Engine that would serve them: vllm, sglang, tensorrt-llm, or none for the layout alone.",
)
@click.option("--pipeline-parallel", is_flag=True, help="The target would be split into pipeline stages.")
@click.option(
    "--values/--no-values",
    default=None,
    help="Read all weights, or none.  [default: all of a folder here, small tensors of one on the Hub]",
)
@click.option("--select", multiple=True, metavar="CODE", help="Rules to check, as in EH204 or EH2; all by default.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Rules to leave out.")
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default="error",
    show_default=True,
    help="Mildest finding that makes the exit code 1.",
)
@click.option("--strict", is_flag=True, help="Short for --fail-on warning.")
@located_report_options
def validate(
    paths: tuple[str, ...],
    forced_format: str | None,
    target: str | None,
    answers: Answers,
    engine_name: str,
    pipeline_parallel: bool,
    values: bool | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    strict: bool,
    options: ReportOptions,
) -> None:
    """Find what is wrong with the drafters at PATH... without running a model.

    A PATH is a drafter's folder, the config.json in it, or org/repo[@revision] or hf://org/repo[@revision][/folder] on
    the Hugging Face Hub. Drafters are judged as the engine would serve them.

    \b
    Examples:
      eaglehub validate drafter/ --target target/
      eaglehub validate drafter/ --engine vllm==0.24 --format sarif
      eaglehub validate */config.json --no-values --ignore EH9
      eaglehub validate org/drafter@v1.0 --target org/target
    """
    codes = (matching(select, "--select") if select else frozenset(CATALOGUE)) - matching(ignore, "--ignore")
    engine = load_engine(engine_name)
    if engine and engine.nearest:
        warn(f"{engine.name} is not described; judged as {engine.title} {engine.nearest}")
    settings = Settings(
        engine=engine,
        target=read_target(target_facts(target)) if target else None,
        values=values is not False,
        pipeline=pipeline_parallel,
        forced_format=forced_format,
        answers=answers,
    )
    report = ValidateReport(
        judgements=tuple(judge(readable(path, values=bool(values)), settings) for path in paths),
        engine=engine,
        target=settings.target,
        codes=codes,
        fail_on="warning" if strict else fail_on,
    )
    finish(report, options)
