"""`eaglehub convert`: a drafter of any producer, rewritten as an engine loads it."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.checkpoint import open_checkpoint
from eaglehub.cli.options import ReportOptions, paged_report_options, reading_options
from eaglehub.cli.output import finish, progress
from eaglehub.cli.places import fetched, readable, target_facts
from eaglehub.convert import Conversion, Refused, execute, plan_conversion
from eaglehub.convert.report import ConvertReport
from eaglehub.drafter.target import read_target
from eaglehub.errors import UsageProblem
from eaglehub.formats.spec import writable_formats
from eaglehub.validate import output_faults

if TYPE_CHECKING:
    from eaglehub.reading import Answers

_DTYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def _size(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    """A number of bytes such as 5GB or 500MiB."""
    if value is None:
        return None
    parts = re.fullmatch(r"(\d{1,12})\s*([A-Za-z]*)", value.strip(), re.ASCII)
    if not parts or parts[2].upper() not in _UNITS or not int(parts[1]):
        raise click.BadParameter(f"{value!r} is not a size, as in 5GB or 500MiB")
    return int(parts[1]) * _UNITS[parts[2].upper()]


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("output", metavar="[OUT]", required=False)
@reading_options
@click.option(
    "--to",
    "layout",
    type=click.Choice(tuple(writable_formats())),
    default="vllm",
    show_default=True,
    help="Layout to write.",
)
@click.option("--dtype", type=click.Choice(tuple(_DTYPES)), help="Cast float weights; the default keeps each as it is.")
@click.option("--dry-run", is_flag=True, help="Show the plan and write nothing; OUT may be left out.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if converting would change anything.")
@click.option("--force", is_flag=True, help="Replace OUT if it is a drafter's folder.")
@click.option(
    "--max-shard-size", callback=_size, metavar="SIZE", help="Split the weights into files of this size, as in 5GB."
)
@paged_report_options
def convert(
    source: str,
    output: str | None,
    forced_format: str | None,
    target: str | None,
    answers: Answers,
    layout: str,
    dtype: str | None,
    dry_run: bool,
    check: bool,
    force: bool,
    max_shard_size: int | None,
    options: ReportOptions,
) -> None:
    """Rewrite the drafter SRC as the folder OUT, in vLLM's native EAGLE-3/3.1 layout unless told otherwise.

    Who wrote SRC is detected. What SRC does not say is reported with the option that settles it, never guessed.

    \b
    Examples:
      eaglehub convert drafter/ drafter-vllm/ --target target/
      eaglehub convert drafter/ --dry-run
      eaglehub convert drafter/ drafter-sglang/ --to sglang
      eaglehub convert org/drafter drafter-vllm/ --target org/target
    """
    if not output and not (dry_run or check):
        raise UsageProblem("missing argument OUT", fix="or use --dry-run or --check, which write nothing")
    facts = read_target(target_facts(target)) if target else None
    conversion = plan_conversion(
        open_checkpoint(readable(source) if dry_run or check else fetched(source)),
        layout=layout,
        forced_format=forced_format,
        answers=answers,
        target=facts,
        dtype=_DTYPES[dtype] if dtype else None,
    )
    status = _status(conversion, dry_run, check)
    if status in ("converted", "copied"):
        with progress(conversion.nbytes, "converting") as advance:
            try:
                execute(
                    conversion,
                    Path(str(output)),
                    force=force,
                    max_shard_size=max_shard_size,
                    progress=advance,
                    approve=partial(output_faults, layout=layout, target=facts),
                )
            except Refused as refused:
                conversion, status = refused.refusal(conversion), "refused"
    written = str(output) if status in ("converted", "copied") else ""
    finish(ConvertReport(conversion, layout, status, written, detailed=dry_run or check), options)


def _status(conversion: Conversion, dry_run: bool, check: bool) -> str:
    if conversion.plan is None:
        return "refused"
    if check:
        return "would change" if conversion.plan.changes else "unchanged"
    if dry_run:
        return "planned" if conversion.plan.changes else "unchanged"
    return "converted" if conversion.plan.changes else "copied"
