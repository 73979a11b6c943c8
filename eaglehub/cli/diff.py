"""`eaglehub diff`: what changed between two drafters."""

from __future__ import annotations

import click

from eaglehub.checkpoint import open_checkpoint
from eaglehub.cli.options import ReportOptions, report_options
from eaglehub.cli.output import finish, progress
from eaglehub.cli.places import readable
from eaglehub.diff import bytes_to_compare, diff_checkpoints


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--values", is_flag=True, help="Download drafters on the Hub, to compare all values.")
@report_options
def diff(before: str, after: str, values: bool, options: ReportOptions) -> None:
    """Compare the configs and the tensor values of the drafters A and B.

    Of a drafter on the Hub only headers and digests are looked at, unless with --values. Exits with 0 when they are
    known to be the same, else with 1.

    \b
    Examples:
      eaglehub diff drafter/ drafter-converted/
      eaglehub diff org/drafter@v1 org/drafter@v2
    """
    old, new = (open_checkpoint(readable(each, values=values)) for each in (before, after))
    with progress(bytes_to_compare(old, new), "comparing") as advance:
        report = diff_checkpoints(old, new, advance)
    finish(report, options)
