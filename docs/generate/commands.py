"""Every command, from the click tree."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING

import click

from docs.generate.markdown import code, plain, table
from eaglehub.cli import main as command_line
from eaglehub.errors import EnvironmentProblem, HubProblem, UnusableInput, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROBLEMS = (UsageProblem, UnusableInput, EnvironmentProblem, HubProblem)
_OTHER_CODES = {
    0: "Done, and nothing was found that should stop you.",
    1: "Findings: refused, would change, differs, or a threshold was missed.",
    command_line.BUG: "A bug in eaglehub; `eaglehub --debug COMMAND` shows the traceback.",
    command_line.INTERRUPTED: "Interrupted.",
    command_line.BROKEN_PIPE: "The reader of a pipe went away.",
}


def commands() -> Iterator[str]:
    """Lines of the page."""
    yield "# Commands"
    yield from ("", "Results go to standard output; progress and remarks go to standard error.", "")
    yield "`eaglehub COMMAND --help` says the same as this page. Options before the command hold for all of them:"
    context = click.Context(command_line.cli, info_name=command_line.PROGRAM)
    yield from ("", *_options(command_line.cli, context))
    yield from ("", "## Exit codes", "", *table(("code", "meaning"), _exit_codes()))
    for name in command_line.cli.list_commands(context):
        if command := command_line.cli.get_command(context, name):
            yield from _command(name, command, context)


def _exit_codes() -> Iterator[tuple[str, str]]:
    codes = _OTHER_CODES | {problem.exit_code: (problem.__doc__ or "").partition("\n")[0] for problem in _PROBLEMS}
    return ((str(number), meaning) for number, meaning in sorted(codes.items()))


def _command(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from ("", f"## {name}", "", "```text", usage, "```")
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        yield from ("", *_paragraph(paragraph))
    yield from ("", *_options(command, context))


def _paragraph(text: str) -> Iterator[str]:
    """Click's help: a paragraph that begins with a backspace is kept as it is, the first line being its title."""
    if not text.startswith("\b\n"):
        yield plain(" ".join(text.split()))
        return
    title, *lines = text.removeprefix("\b\n").splitlines()
    if not lines:
        title, _, line = title.partition(": ")
        lines = [line]
    yield from (f"{title.rstrip(':')}:", "", "```sh", *(line.strip() for line in lines), "```")


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    records = (record for option in options if (record := option.get_help_record(context)))
    yield from table(("option", "meaning"), ((code(names), plain(text)) for names, text in records))
