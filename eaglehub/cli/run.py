"""`eaglehub run`: all steps of a recipe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.cli.options import report_options
from eaglehub.cli.output import finish, quiet, say
from eaglehub.recipe.recipe import read_recipe
from eaglehub.recipe.report import RunReport
from eaglehub.recipe.run import Orders, run_recipe

if TYPE_CHECKING:
    from eaglehub.cli.options import ReportOptions


@click.command()
@click.argument("recipe", metavar="RECIPE")
@click.option("--plan", is_flag=True, help="Say what would run and what is done already, and run nothing.")
@click.option("--from-step", "first", metavar="STEP", help="Begin here, even if it is done; those before it must be.")
@click.option("--to-step", "last", metavar="STEP", help="End after this one.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change the recipe for this run: target=FOLDER, upgrade.max-tokens=64; can be repeated.",
)
@report_options
def run(
    recipe: str, plan: bool, first: str | None, last: str | None, settings: tuple[str, ...], options: ReportOptions
) -> None:
    """Run the steps of RECIPE that are not done yet; an interrupted run goes on where it was.

    \b
    Examples:
      eaglehub run recipe.yaml --plan
      eaglehub run recipe.yaml
      eaglehub run recipe.yaml --from-step verify --set verify.max-tokens=128
    """
    read = read_recipe(Path(recipe), settings)
    command = [sys.executable, "-m", "eaglehub.cli.step", *(["--quiet"] if quiet() else [])]
    orders = Orders(command=command, plan=plan, first=first, last=last, announce=say)
    finish(RunReport(read.name, run_recipe(read, orders)), options)
