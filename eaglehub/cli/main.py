"""The `eaglehub` command: a lazy table of commands, and the one place where exceptions become exit codes.

Nothing heavy is imported here; a command's module is imported when that command runs.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from eaglehub import __version__
from eaglehub.errors import EaglehubError, EnvironmentProblem, UnusableInput, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

PROGRAM = "eaglehub"
BUG, INTERRUPTED, BROKEN_PIPE = 70, 130, 141

# What the operating system refuses because of the machine, whichever file it concerned.
_MACHINE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
# What it refuses because of the name that it was given.
_NAME_ERRNOS = {errno.ENAMETOOLONG, errno.ELOOP}


class Lazy(NamedTuple):
    """Where a command lives, and the line `--help` shows for it."""

    module: str
    attribute: str
    short_help: str


COMMANDS = {
    "convert": Lazy("eaglehub.cli.convert", "convert", "Rewrite a drafter as vLLM loads it."),
    "inspect": Lazy("eaglehub.cli.inspect", "inspect", "Show who wrote a drafter and what it declares."),
    "diff": Lazy("eaglehub.cli.diff", "diff", "Compare the configs and tensors of two drafters."),
    "validate": Lazy("eaglehub.cli.validate", "validate", "Find what is wrong with drafters before serving them."),
    "rules": Lazy("eaglehub.cli.rules", "rules", "List the rules that validate checks."),
    "explain": Lazy("eaglehub.cli.rules", "explain", "Say what a rule is about and how to fix its findings."),
    "verify": Lazy("eaglehub.cli.verify", "verify", "Run a drafter in a real vLLM and judge it."),
    "report": Lazy("eaglehub.cli.report", "report", "Show a stored report as a page, or compare two."),
    "serve-command": Lazy("eaglehub.cli.serve_command", "serve_command", "Print the command that serves a drafter."),
    "upgrade": Lazy("eaglehub.cli.upgrade", "upgrade", "Turn an EAGLE-3 drafter into an EAGLE 3.1 one."),
    "finetune": Lazy("eaglehub.cli.finetune", "finetune", "Train a part of a drafter, and keep it only if better."),
    "evaluate": Lazy("eaglehub.cli.evaluate", "evaluate", "Measure a drafter's acceptance and drift without a server."),
    "run": Lazy("eaglehub.cli.run", "run", "Run all steps of a recipe that are not done yet."),
    "init": Lazy("eaglehub.cli.init", "init", "Write a recipe, or a file for CI, to begin with."),
    "card": Lazy("eaglehub.cli.card", "card", "Write the model card of a drafter."),
    "publish": Lazy("eaglehub.cli.publish", "publish", "Publish a drafter on the Hub, in one commit."),
    "formats": Lazy("eaglehub.cli.formats", "formats", "List the layouts that can be read and written."),
    "schema": Lazy("eaglehub.cli.schema", "schema", "List or print the JSON Schemas of configs and reports."),
    "env": Lazy("eaglehub.cli.env", "env", "Show versions and hardware, for a bug report."),
}


class LazyGroup(click.Group):
    """A group whose commands come from `COMMANDS`; its help imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        lazy = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(lazy.module), lazy.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the nearest one."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            raise click.UsageError(_unknown(name), ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands from the table, and this group's own options."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=COMMANDS[name].short_help) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command section of `--help` from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].short_help) for name in self.list_commands(ctx)])


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"The commands are {', '.join(COMMANDS)}."
    return f"No such command {name!r}. {hint}"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option("-q", "--quiet", is_flag=True, help="Print results and errors only.")
@click.option("--debug", is_flag=True, envvar="EAGLEHUB_DEBUG", help="Show the traceback of an error.")
def cli(quiet: bool, debug: bool) -> None:
    """Convert, validate, upgrade, fine-tune, verify and publish EAGLE-3 drafters.

    Exit codes: 0 ok, 1 findings, 2 wrong usage, 3 unusable input, 4 environment, 5 Hub or network, 70 a bug in
    eaglehub, 130 interrupted.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; no exception but SystemExit leaves.

    Args:
        argv: arguments after the program's name; `sys.argv[1:]` when None.
    """
    _never_fail_on_encoding()
    if f"_{PROGRAM.upper()}_COMPLETE" in os.environ:
        cli.main(prog_name=PROGRAM)  # prints the completions and exits
    debug = False
    try:
        with cli.make_context(PROGRAM, list(sys.argv[1:] if argv is None else argv)) as ctx:
            debug = ctx.params["debug"]
            cli.invoke(ctx)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line of defence
        return _explain(error, debug)
    return 0


def _never_fail_on_encoding() -> None:
    """Let a character that the terminal's encoding lacks print as an escape."""
    for name in ("stdout", "stderr"):
        # Closed by the caller: Python has None there, which nothing can be written to.
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for the whole run
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _explain(error: BaseException, debug: bool) -> int:
    """Say on stderr what went wrong; returns the exit code."""
    if debug:
        import traceback

        traceback.print_exception(error)
    match error:
        case click.ClickException():
            error.show()
            return UsageProblem.exit_code
        case EaglehubError():
            _error_line(str(error))
            return error.exit_code
        case KeyboardInterrupt() | click.Abort():
            click.echo("interrupted", err=True)
            return INTERRUPTED
        case BrokenPipeError():
            _abandon_stdout()
            return BROKEN_PIPE
        case OSError() if error.errno in _MACHINE_ERRNOS:
            if error.filename is None:
                _abandon_stdout()
            _error_line(f"{error.filename or 'standard output'}: {error.strerror}")
            return EnvironmentProblem.exit_code
        case OSError() if error.errno in _NAME_ERRNOS:
            _error_line(f"{error.filename}: {error.strerror}")
            return UnusableInput.exit_code
        case _:
            what = f"this is a bug in eaglehub: {type(error).__name__}: {error}"
            _error_line(str(EaglehubError(what, fix=f"run it as `{PROGRAM} --debug ...` and report the traceback")))
            return BUG


def _error_line(text: str) -> None:
    from eaglehub.report.text import escaped

    click.echo(f"error: {escaped(text)}", err=True)


def _abandon_stdout() -> None:
    """Drop what stdout still holds: the interpreter's own flush at exit would fail again, and loudly."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
