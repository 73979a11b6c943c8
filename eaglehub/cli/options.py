"""Options that several commands share, each declared once."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from eaglehub.pages import PAGES
from eaglehub.report.formats import PLAIN, REPORTERS

if TYPE_CHECKING:
    from collections.abc import Callable


class OutputFile(NamedTuple):
    """One `--output FORMAT=FILE`."""

    format: str
    path: Path


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How a command's report is to be shown: the format on stdout, and the files to write besides."""

    format: str
    outputs: tuple[OutputFile, ...]


def _output_file(value: str, formats: tuple[str, ...]) -> OutputFile:
    """Refuse at once what could not be written after a long run."""
    format_name, _, file = value.partition("=")
    if not file:
        raise click.BadParameter(f"{value!r} is not FORMAT=FILE, as in json=report.json")
    if format_name not in formats:
        raise click.BadParameter(f"unknown format {format_name!r}; known: {', '.join(formats)}")
    path = Path(file)
    if file == "-":
        raise click.BadParameter("standard output is what --format is for")
    if path.name == "config.json" or path.suffix in (".safetensors", ".bin", ".pt"):
        raise click.BadParameter(f"{file!r} is the name of a checkpoint's file, not of a report")
    if path.is_dir():
        raise click.BadParameter(f"{file!r} is a folder")
    if not path.parent.is_dir():
        raise click.BadParameter(f"the folder of {file!r} does not exist")
    return OutputFile(format_name, path)


def report_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--format`, `--json` and `--output`; the command receives them as `options: ReportOptions`."""
    return _report_options(command, PLAIN)


def paged_report_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command whose report there is a page for."""
    return _report_options(command, (*PLAIN, *PAGES))


def cases_report_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command whose report is a `CasesReport` that there is a page for: JUnit and pages as well."""
    return _report_options(command, (*PLAIN, "junit", *PAGES))


def page_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command whose result is a page: there is no JSON of it."""
    return _report_options(command, ("text", *PAGES))


def located_report_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command whose report is a `LocatedReport` that there is a page for: every format."""
    return _report_options(command, (*REPORTERS, *PAGES))


def _report_options(command: Callable[..., None], formats: tuple[str, ...]) -> Callable[..., None]:
    @click.option(
        "--format",
        "format_name",
        type=click.Choice(formats),
        default="text",
        show_default=True,
        help="Format of the report on standard output.",
    )
    @click.option(
        "--output",
        "outputs",
        multiple=True,
        metavar="FORMAT=FILE",
        callback=lambda _ctx, _param, values: tuple(_output_file(value, formats) for value in values),
        help="Write the report to a file as well; can be given several times.",
    )
    @functools.wraps(command)
    def with_options(
        *args: Any, format_name: str, outputs: tuple[OutputFile, ...], as_json: bool = False, **kwargs: Any
    ) -> None:
        options = ReportOptions("json" if as_json else format_name, outputs)
        command(*args, options=options, **kwargs)

    if "json" not in formats:
        return with_options
    return click.option("--json", "as_json", is_flag=True, help="Short for --format json.")(with_options)


def repository(_ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """Callback of an option or argument that names a repository; an absent one is an empty text."""
    if value and not re.fullmatch(r"[\w.-]+/[\w.-]+", value, re.ASCII):
        raise click.BadParameter(f"{value!r} is not ORG/NAME", param=param)
    return value or ""


def _layer_ids(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not re.fullmatch(r"\d{1,5}(,\d{1,5})*", value, re.ASCII):
        raise click.BadParameter(f"{value!r} is not a list of layer ids, as in 2,15,27")
    return tuple(int(part) for part in value.split(","))


def _base(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter(f"{value} is not a positive number")
    return value


def reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what helps to read a drafter; the command gets `forced_format`, `target` and `answers: Answers`."""

    @click.option("--from", "forced_format", metavar="FORMAT", help="The source's format; see `eaglehub formats`.")
    @click.option("--target", metavar="TARGET", help="The target model (its config.json is enough): fills and checks.")
    @click.option(
        "--aux-layer-ids", callback=_layer_ids, metavar="IDS", help="Target layers it was trained on, as in 2,15,27."
    )
    @click.option(
        "--aux-id-convention",
        type=click.Choice(("in", "out")),
        help="What layer ids mean: in = the state that enters layer k, out = the one that leaves it.",
    )
    @click.option(
        "--feedback",
        type=click.Choice(("pre-norm", "post-norm")),
        help="Which state it was trained to feed back, where the file does not say.",
    )
    @click.option(
        "--norm-before-residual/--no-norm-before-residual",
        default=None,
        help="Whether the residual is taken after hidden_norm, where the file does not say.",
    )
    @click.option("--rope-theta", type=float, callback=_base, help="RoPE base it was really trained with.")
    @functools.wraps(command)
    def with_answers(
        *args: Any,
        aux_layer_ids: tuple[int, ...] | None,
        aux_id_convention: str | None,
        feedback: str | None,
        norm_before_residual: bool | None,
        rope_theta: float | None,
        **kwargs: Any,
    ) -> None:
        from eaglehub.reading import Answers

        answers = Answers(
            feedback=feedback,
            norm_before_residual=norm_before_residual,
            aux_layer_ids=aux_layer_ids,
            aux_id_convention=aux_id_convention,
            rope_theta=rope_theta,
        )
        command(*args, answers=answers, **kwargs)

    return with_answers
