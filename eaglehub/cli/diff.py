"""`eaglehub diff`: what changed between two drafters."""

from __future__ import annotations

import click

from eaglehub.checkpoint import open_checkpoint
from eaglehub.cli.options import ReportOptions, report_options
from eaglehub.cli.output import finish, progress
from eaglehub.diff import bytes_to_compare, diff_checkpoints


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@report_options
def diff(before: str, after: str, options: ReportOptions) -> None:
    """Compare the configs and the tensor values of the drafters A and B.

    Exits with 0 when they are the same and 1 when they differ.

    \b
    Example: eaglehub diff drafter/ drafter-converted/
    """
    old, new = open_checkpoint(before), open_checkpoint(after)
    with progress(bytes_to_compare(old, new), "comparing") as advance:
        report = diff_checkpoints(old, new, advance)
    finish(report, options)
