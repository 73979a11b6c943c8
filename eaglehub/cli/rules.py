"""`eaglehub rules` and `eaglehub explain`: what `validate` checks, and why."""

from __future__ import annotations

import click

from eaglehub.cli.options import ReportOptions, report_options
from eaglehub.cli.output import finish
from eaglehub.validate import CATALOGUE, matching
from eaglehub.validate.report import RulesReport


@click.command()
@report_options
def rules(options: ReportOptions) -> None:
    """List every rule with its severity.

    \b
    Example: eaglehub rules
    """
    finish(RulesReport(tuple(CATALOGUE.values())), options)


@click.command()
@click.argument("codes", metavar="CODE...", nargs=-1, required=True)
@report_options
def explain(codes: tuple[str, ...], options: ReportOptions) -> None:
    """Say what the rule CODE is about, what it is backed by and how to fix its findings.

    \b
    Example: eaglehub explain EH204
    """
    chosen = matching(codes, "explain")
    finish(RulesReport(tuple(rule for code, rule in CATALOGUE.items() if code in chosen), detailed=True), options)
