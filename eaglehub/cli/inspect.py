"""`eaglehub inspect`: one drafter on one screen."""

from __future__ import annotations

import click

from eaglehub.checkpoint import open_checkpoint
from eaglehub.cli.options import ReportOptions, reading_options, report_options
from eaglehub.cli.output import finish
from eaglehub.cli.places import readable, target_facts
from eaglehub.drafter.target import read_target
from eaglehub.inspect import InspectReport
from eaglehub.reading import Answers, read_drafter


@click.command()
@click.argument("drafter")
@reading_options
@report_options
def inspect(
    drafter: str, forced_format: str | None, target: str | None, answers: Answers, options: ReportOptions
) -> None:
    """Show who wrote DRAFTER, what it is and what is not certain about it.

    \b
    Examples:
      eaglehub inspect drafter/ --target target/
      eaglehub inspect org/drafter
    """
    checkpoint = open_checkpoint(readable(drafter))
    reading = read_drafter(
        checkpoint,
        forced_format=forced_format,
        answers=answers,
        target=read_target(target_facts(target)) if target else None,
    )
    finish(InspectReport(checkpoint, reading), options)
