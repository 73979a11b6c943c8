"""What commands print: results on stdout and in files, chatter and progress on stderr."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from eaglehub.errors import EnvironmentProblem
from eaglehub.pages import PAGES
from eaglehub.report.formats import REPORTERS
from eaglehub.report.text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from eaglehub.cli.options import OutputFile, ReportOptions
    from eaglehub.report.report import Report

_WRITERS = REPORTERS | PAGES


def finish(report: Report, options: ReportOptions) -> NoReturn:
    """Write the report where it is wanted and leave with its exit code.

    Files come first: a reader who closes stdout early does not lose them.

    Raises:
        EnvironmentProblem: a file cannot be written.
    """
    for output in options.outputs:
        _write_file(report, output)
    _WRITERS[options.format](report, sys.stdout)
    sys.stdout.flush()
    click.get_current_context().exit(report.exit_code)


def say(text: str) -> None:
    """Tell the user something that is no result."""
    if not quiet():
        click.echo(escaped(text), err=True)


def warn(text: str) -> None:
    """Warn the user, without changing the outcome."""
    say(f"warning: {text}")


@contextlib.contextmanager
def progress(total: int, label: str) -> Iterator[Callable[[int], None]]:
    """Show a bar while `total` bytes go by; the yielded function takes how many more have passed.

    There is no bar with `--quiet` or where stderr is no terminal.
    """
    if quiet() or not sys.stderr.isatty():
        yield lambda _: None
        return

    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from eaglehub.report.text import console_for

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console_for(sys.stderr), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)


def quiet() -> bool:
    """Whether only results and errors are wanted."""
    return bool(click.get_current_context().find_root().params["quiet"])


def _write_file(report: Report, output: OutputFile) -> None:
    write = _WRITERS[output.format]
    # A link is followed, so that replacing the file leaves the link in place.
    path = Path(os.path.realpath(output.path))  # resolve() raises an error of its own at a circle of links
    try:
        if path.exists() and not path.is_file():  # a pipe or a device: there is nothing to replace
            with path.open("w", encoding="utf-8") as stream:
                write(report, stream)
            return
        with _replacing(path) as draft, draft.open("w", encoding="utf-8") as stream:
            write(report, stream)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write the report: {error.strerror}", where=str(output.path)) from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file, in a folder that is made where there is none; a failure leaves it as it was. A link is followed.

    Raises:
        EnvironmentProblem: it cannot be written.
    """
    place = Path(os.path.realpath(path))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _replacing(place) as draft:
            draft.write_bytes(data)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write it: {error.strerror}", where=str(path)) from error


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A draft in the same folder that takes the place of `path` once the block has succeeded."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        # Made inside a private folder, the file itself gets the permissions that the user's umask says.
        draft = Path(folder) / path.name
        yield draft
        draft.replace(path)
