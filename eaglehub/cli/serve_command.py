"""`eaglehub serve-command`: how a drafter is served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.checkpoint import open_checkpoint
from eaglehub.checkpoint.hub import HubName, hub_name
from eaglehub.cli.options import ReportOptions, report_options
from eaglehub.cli.output import finish, say, warn
from eaglehub.cli.places import readable
from eaglehub.drafter.target import read_target
from eaglehub.engines import load_engine
from eaglehub.errors import UsageProblem
from eaglehub.reading import read_drafter
from eaglehub.report.findings import Severity, has_errors
from eaglehub.serving import SERVERS, Service
from eaglehub.serving import serve_command as build_command
from eaglehub.serving.report import ServeReport
from eaglehub.validate import Settings, judge

if TYPE_CHECKING:
    from eaglehub.engines import Engine
    from eaglehub.validate.judge import Judgement

_COUNT = click.IntRange(min=1)


@click.command()
@click.argument("drafter")
@click.option("--target", required=True, metavar="TARGET", help="The target: its folder, or just its name on the Hub.")
@click.option(
    "--engine", "engine_name", default="vllm", show_default=True, metavar="NAME[==VERSION]", help="Or sglang."
)
@click.option("--num-speculative-tokens", type=_COUNT, default=5, show_default=True, help="Tokens to draft a step.")
@click.option("--tensor-parallel-size", type=_COUNT, default=1, show_default=True, help="GPUs to split layers over.")
@click.option("--max-model-len", type=_COUNT, help="Positions of the longest sequence.  [default: the target's]")
@report_options
def serve_command(
    drafter: str,
    target: str,
    engine_name: str,
    num_speculative_tokens: int,
    tensor_parallel_size: int,
    max_model_len: int | None,
    options: ReportOptions,
) -> None:
    """Print the command that serves DRAFTER with its TARGET, quoted for a shell.

    A drafter that the engine would not read as it is meant is refused: the findings are on standard error, the exit
    code is 1. A TARGET that is no folder here is taken for a name and not looked at.

    \b
    Examples:
      eaglehub serve-command drafter/ --target org/target
      eaglehub serve-command org/drafter --target target/ --engine sglang --tensor-parallel-size 4
    """
    engine = _engine(engine_name)
    facts = read_target(target) if Path(target).exists() else None
    place = readable(drafter)
    named, target_named = _named(drafter), _named(target)
    judgement = judge(place, Settings(engine=engine, target=facts))
    _tell(judgement)
    refused = has_errors(judgement.findings)
    described = None if refused else read_drafter(open_checkpoint(place), target=facts).sketch
    command = None
    if described:
        service = Service(
            drafter=named.repo,
            target=target_named.repo,
            revision=named.revision,
            target_revision=target_named.revision,
            num_speculative_tokens=num_speculative_tokens,
            tensor_parallel_size=tensor_parallel_size,
            max_model_len=max_model_len,
        )
        command = build_command(engine.id, described, facts, service)
        for note in command.notes:
            warn(note)
    finish(ServeReport(engine.name, judgement.findings, command, judgement.exit_code), options)


def _engine(name: str) -> Engine:
    engine = load_engine(name)
    if engine is None or engine.id not in SERVERS:
        raise UsageProblem(f"no command line of {name} is known", where="--engine", fix=f"one of {', '.join(SERVERS)}")
    return engine


def _named(text: str) -> HubName:
    """A path of this machine as it is; what is on the Hub by its repository and revision, as servers take it."""
    if text.startswith("-"):
        raise UsageProblem("begins with a dash, which a server takes for an option", where=text, fix="./ before a path")
    name = None if Path(text).exists() else hub_name(text)
    if name and name.subfolder:
        raise UsageProblem("servers take a repository, not a folder in it", where=text, fix="download it")
    return name or HubName(text)


def _tell(judgement: Judgement) -> None:
    for finding in judgement.findings:
        if finding.severity is not Severity.NOTE:
            fix = f" (fix: {finding.fix})" if finding.fix else ""
            say(f"{finding.severity} {finding.code} {finding.where or judgement.title}: {finding.message}{fix}")
