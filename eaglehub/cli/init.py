"""`eaglehub init`: a recipe to begin with, or files for CI."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from click.core import ParameterSource

from eaglehub.cli.ci_files import CI, write_ci_files
from eaglehub.cli.output import say, write_file
from eaglehub.errors import UsageProblem
from eaglehub.resources import resource

_EXAMPLES = {"source": "drafters/my-drafter", "target": "models/my-target", "prompts": "mixed", "repo": ""}
_QUESTIONS = {
    "source": "The EAGLE-3 drafter (folder, or name on the Hub)",
    "target": "Its target model (folder, or name on the Hub)",
    "prompts": "Prompts (file, or built-in suite)",
    "repo": "Repository to publish to (empty for none)",
}

_LICENSE = "Licence to publish it under, as in apache-2.0 (empty for the source's)"


@click.command()
@click.argument("file", metavar="[RECIPE]", default="recipe.yaml")
@click.option("--source", metavar="DRAFTER", help="The drafter to begin with.")
@click.option("--target", metavar="FOLDER", help="The model it drafts for.")
@click.option("--prompts", metavar="FILE", help="What the target is asked.  [default: mixed]")
@click.option("--repo", metavar="REPO", help="Where it would be published.")
@click.option("--license", "license_id", metavar="ID", help="Its licence, as in apache-2.0.  [default: the source's]")
@click.option("--finetune/--no-finetune", default=True, show_default=True, help="Train the norms and fc.")
@click.option("--verify/--no-verify", default=True, show_default=True, help="Run it in vLLM.")
@click.option("--ci", type=click.Choice(CI), multiple=True, help="Write a file for that CI instead of a recipe.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def init(
    file: str,
    source: str | None,
    target: str | None,
    prompts: str | None,
    repo: str | None,
    license_id: str | None,
    finetune: bool,
    verify: bool,
    ci: tuple[str, ...],
    force: bool,
) -> None:
    """Write a commented recipe, to be edited and run. On a terminal, what is not given is asked for.

    \b
    Examples:
      eaglehub init
      eaglehub init llama.yaml --source drafters/llama --target models/llama --repo me/llama-eagle3.1 --license llama3.1
      eaglehub init --ci github
    """
    if ci:
        _refuse_all_but("ci", "force")
        write_ci_files(ci, force=force)
        return
    path = Path(file)
    if path.exists() and not force:
        raise UsageProblem("is there already", where=file, fix="--force replaces it")
    given = {"source": source, "target": target, "prompts": prompts, "repo": repo}
    answers = {name: _EXAMPLES[name] if value is None else value for name, value in given.items()}
    if sys.stdin.isatty():
        for name in (name for name, value in given.items() if value is None):
            answers[name] = click.prompt(_QUESTIONS[name], default=_EXAMPLES[name], err=True)
    if answers["repo"] and license_id is None and sys.stdin.isatty():
        license_id = click.prompt(_LICENSE, default="", show_default=False, err=True)
    text = _render({**answers, "license": license_id, "finetune": finetune, "verify": verify, "file": path.name})
    write_file(path, text.encode())
    click.echo(f"wrote {file}")
    say(f"next: edit it, then `eaglehub run {file} --plan`")


def _refuse_all_but(*allowed: str) -> None:
    """What describes a recipe would be lost without a word."""
    context = click.get_current_context()
    given = (name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE)
    if stray := next((name for name in given if name not in allowed), None):
        raise UsageProblem(f"no recipe is written, so {stray} has no meaning", where="--ci")


def _render(values: dict[str, object]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - no markup: texts go through tojson
        loader=FileSystemLoader(resource("templates")), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    return environment.get_template("recipe.yaml.j2").render(values)
