"""`eaglehub env`: what a bug report should say about the machine."""

from __future__ import annotations

import click

from eaglehub.cli.options import ReportOptions, report_options
from eaglehub.cli.output import finish
from eaglehub.environment import describe_environment


@click.command()
@report_options
def env(options: ReportOptions) -> None:
    """Show versions, extras and hardware: no secrets, paths or host name.

    \b
    Example: eaglehub env --json
    """
    finish(describe_environment(), options)
