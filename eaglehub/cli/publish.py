"""`eaglehub publish`: a drafter's folder becomes one commit on the Hub."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.cli.options import ReportOptions, report_options, repository
from eaglehub.cli.output import finish, quiet, say, warn
from eaglehub.cli.places import existing_folder
from eaglehub.errors import UsageProblem

if TYPE_CHECKING:
    from eaglehub.publish.publish import Prepared

_NAME = re.compile(r"[\w./-]+", re.ASCII)


def _reference(_ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    if value and not _NAME.fullmatch(value):
        raise click.BadParameter(f"{value!r} is no name of a branch or tag", param=param)
    return value or ""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("repo", callback=repository)
@click.option("--private", is_flag=True, help="Make the repository a private one, where there is none yet.")
@click.option("--revision", callback=_reference, metavar="BRANCH", help="Commit to this branch.  [default: main]")
@click.option("--create-pr", is_flag=True, help="Open a pull request instead of committing.")
@click.option("--tag", callback=_reference, help="Tag the commit.")
@click.option("--message", default="Publish with eaglehub", show_default=True, help="Of the commit.")
@click.option("--license", "license_id", default="", metavar="ID", help="Licence, as in apache-2.0; else the source's.")
@click.option("--base-model", callback=repository, metavar="REPO", help="The target's repository, for the card.")
@click.option("--source-model", callback=repository, metavar="REPO", help="The repository it was made from.")
@click.option("--engine", default="vllm", show_default=True, metavar="NAME[==VERSION]", help="As in validate.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Rules of validate to overlook; the card says so.")
@click.option("--allow-unverified", is_flag=True, help="Publish without a passed eaglehub verify; the card says so.")
@click.option("--dry-run", is_flag=True, help="Show files, card and checks; change nothing on the Hub.")
@click.option("--yes", is_flag=True, help="Do not ask before publishing.")
@report_options
def publish(
    folder: Path,
    repo: str,
    private: bool,
    revision: str,
    create_pr: bool,
    tag: str,
    message: str,
    license_id: str,
    base_model: str,
    source_model: str,
    engine: str,
    ignore: tuple[str, ...],
    allow_unverified: bool,
    dry_run: bool,
    yes: bool,
    options: ReportOptions,
) -> None:
    """Publish the drafter in FOLDER as the Hugging Face repository REPO, in one commit.

    The drafter must be valid, and eaglehub verify must have passed on these very files. A card is written from what
    is known; what you wrote in README.md, here or on the Hub, stays. Run again after any failure: nothing is
    published twice.

    \b
    Examples:
      eaglehub publish drafter-3.1/ org/drafter-3.1 --base-model org/target --dry-run
      eaglehub publish drafter-3.1/ org/drafter-3.1 --base-model org/target --tag v1 --yes
    """
    if create_pr and (revision or tag):
        raise UsageProblem("--create-pr goes with neither --revision nor --tag")
    if not message.strip():
        raise UsageProblem("a commit needs a message", where="--message")
    from eaglehub.engines import load_engine
    from eaglehub.publish.publish import Order, carry_out, prepare
    from eaglehub.publish.remote import MAIN, client
    from eaglehub.publish.write_card import Choices
    from eaglehub.validate import Settings

    order = Order(
        folder=existing_folder(folder),
        repo=repo,
        settings=Settings(engine=load_engine(engine)),
        ignored=ignore,
        allow_unverified=allow_unverified,
        private=private,
        branch=revision or MAIN,
        create_pr=create_pr,
        tag=tag,
        message=message,
        choices=Choices(license_id, base_model, source_model, _ask_license),
        dry_run=dry_run,
    )
    api = client(bars=sys.stderr.isatty() and not quiet())
    prepared = prepare(order, api, warn)
    if dry_run or prepared.report.status == "refused":
        finish(prepared.report, options)
    if not yes and prepared.report.status == "planned":
        _ask(prepared)
    finish(carry_out(prepared, api, say), options)


def _ask_license() -> str:
    if not _can_ask():
        raise UsageProblem("nothing says under which licence", where="--license", fix="name it, as in apache-2.0")
    return str(click.prompt("Licence of the drafter, as in apache-2.0", err=True))


def _ask(prepared: Prepared) -> None:
    if not _can_ask():
        raise UsageProblem("nobody can be asked whether to publish", where="--yes", fix="pass it, or use --dry-run")
    change = prepared.change
    size = sum(file.size for file in change.sent)
    for file in change.sent:
        say(f"  {file.name}  {file.size:,} bytes")
    for name in change.removed:
        say(f"  {name}  removed")
    click.confirm(f"Publish {len(change.sent)} files ({size / 1e6:.1f} MB) to {change.repo}?", abort=True, err=True)


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
