"""`eaglehub schema`: the JSON Schemas that ship with eaglehub."""

from __future__ import annotations

import json

import click

from eaglehub.errors import UsageProblem
from eaglehub.resources import resource

_SUFFIX = ".schema.json"


@click.command()
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema NAME, or list all of them.

    \b
    Example: eaglehub schema report-diff > report-diff.schema.json
    """
    files = {path.name.removesuffix(_SUFFIX): path for path in sorted(resource("schemas").glob(f"*{_SUFFIX}"))}
    if name is None:
        width = max(map(len, files))
        for known, path in files.items():
            click.echo(f"{known:<{width}}  {json.loads(path.read_bytes())['title']}")
    elif name in files:
        click.echo(files[name].read_bytes(), nl=False)
    else:
        raise UsageProblem(f"no schema is called {name!r}", fix=f"known: {', '.join(files)}")
