"""`eaglehub card`: the model card of a drafter, from what is known of it."""

from __future__ import annotations

from pathlib import Path

import click

from eaglehub.cli.options import repository
from eaglehub.cli.output import say, warn, write_file
from eaglehub.cli.places import existing_folder


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", default="", help="The card's title.  [default: the folder's name]")
@click.option("--license", "license_id", default="", metavar="ID", help="Licence, as in apache-2.0.")
@click.option("--base-model", callback=repository, metavar="REPO", help="The target's repository.")
@click.option("--source-model", callback=repository, metavar="REPO", help="The repository it was made from.")
@click.option("--write", is_flag=True, help="Write README.md and its charts into FOLDER instead of showing the card.")
def card(folder: Path, name: str, license_id: str, base_model: str, source_model: str, write: bool) -> None:
    """Show the model card of the drafter in FOLDER, as eaglehub publish would write it.

    A README.md in FOLDER is renewed between its eaglehub markers; everything else in it stays.

    \b
    Examples:
      eaglehub card drafter-3.1/
      eaglehub card drafter-3.1/ --base-model org/target --license apache-2.0 --write
    """
    from eaglehub.card import CARD, Wishes, charts_of, read_card, read_facts, render

    facts = read_facts(existing_folder(folder))
    for file, evidence in facts.evidence.items():
        if not evidence.report:
            say(f"{file} {evidence.problem}, so the card has nothing of it")
    wishes = Wishes(
        name=name or facts.checkpoint.name,
        base_model=base_model or facts.target,
        source_model=source_model or facts.source,
        license=license_id,
    )
    charts = charts_of(facts, warn)
    old = read_card(folder / CARD) if (folder / CARD).is_file() else None
    text = render(facts, wishes, charts, old).text()
    if not write:
        click.echo(text, nl=False)
        return
    # The charts first, so that the card never names one that is not there.
    for file, data in {**charts, CARD: text.encode()}.items():
        write_file(folder / file, data)
    click.echo(f"wrote {folder / CARD}")
