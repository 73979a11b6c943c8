"""`eaglehub report`: stored reports as pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.cli.options import ReportOptions, page_options
from eaglehub.cli.output import finish
from eaglehub.errors import UsageProblem
from eaglehub.pages.build import build_page
from eaglehub.pages.compare import compare_page
from eaglehub.pages.stored import read_report
from eaglehub.pages.write import PageReport

if TYPE_CHECKING:
    from eaglehub.pages.page import Page


@click.command()
@click.argument("files", metavar="REPORT [OTHER]", nargs=-1, required=True)
@page_options
def report(files: tuple[str, ...], options: ReportOptions) -> None:
    """Show a stored REPORT as a page, or what OTHER does better or worse.

    REPORT is the JSON that verify, evaluate, upgrade, finetune, convert or validate wrote; two must be of verify. The
    exit code is 0 whatever the report says.

    \b
    Examples:
      eaglehub report drafter/eaglehub-verify.json
      eaglehub report drafter/eaglehub-verify.json --output html=drafter.html
      eaglehub report old/eaglehub-verify.json new/eaglehub-verify.json --format markdown >> "$GITHUB_STEP_SUMMARY"
    """
    if len(files) > 2:
        raise UsageProblem("one report is shown, or two are compared", where=files[2])
    finish(PageReport(_page([Path(file) for file in files])), options)


def _page(files: list[Path]) -> Page:
    reports = [read_report(file) for file in files]
    if len(reports) == 1:
        return build_page(reports[0])
    return compare_page([file.name for file in files], reports)
