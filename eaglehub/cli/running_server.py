"""`eaglehub verify --base-url`: the checks of a server that runs already."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from eaglehub.cli.output import say
from eaglehub.errors import UsageProblem
from eaglehub.verify.served import ServerTask, check_server
from eaglehub.verify.server import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eaglehub.prompts import Conversation
    from eaglehub.verify.served_report import ServedReport
    from eaglehub.verify.speculating import Thresholds

# The options that make sense for an engine that eaglehub does not start.
_FOR_A_SERVER = {
    *("base_url", "model", "prompts", "limit", "max_tokens", "min_acceptance_length", "position_rates", "fast"),
    *("timeout", "format_name", "as_json", "outputs"),
}


def check_running(
    base_url: str,
    model: str | None,
    prompts: Sequence[Conversation],
    max_tokens: int,
    thresholds: Thresholds,
    fast: bool,
    timeout: float,
) -> ServedReport:
    """Check the server; its key, if it wants one, is in `OPENAI_API_KEY`.

    Raises:
        HubProblem: the server cannot be reached, refuses or fails.
        UsageProblem: an option is for an engine that eaglehub starts.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name not in _FOR_A_SERVER:
            name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
            raise UsageProblem(f"{name} is for an engine that eaglehub starts", where="--base-url", fix="leave one out")
    with contextlib.closing(Server(base_url, os.environ.get("OPENAI_API_KEY"), timeout)) as server:
        task = ServerTask(
            server=server, model=model, prompts=prompts, max_tokens=max_tokens, thresholds=thresholds, fast=fast
        )
        return check_server(task, say)
