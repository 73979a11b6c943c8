"""`eaglehub formats`: the layouts that can be read and written."""

from __future__ import annotations

import click

from eaglehub.cli.options import ReportOptions, report_options
from eaglehub.cli.output import finish
from eaglehub.formats.report import FormatsReport
from eaglehub.formats.spec import load_formats, pick_format


@click.command()
@click.argument("name", metavar="[FORMAT]", required=False)
@report_options
def formats(name: str | None, options: ReportOptions) -> None:
    """List the drafter layouts that can be read and written, or describe one.

    \b
    Examples:
      eaglehub formats
      eaglehub formats specforge
    """
    known = load_formats()
    chosen = [pick_format(known, name, "FORMAT")] if name else list(known.values())
    finish(FormatsReport(tuple(chosen), detailed=name is not None), options)
