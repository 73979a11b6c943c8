"""What `eaglehub init --ci` writes: files for people's CI, to be edited."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.cli.output import say, write_file
from eaglehub.errors import UsageProblem
from eaglehub.resources import resource

if TYPE_CHECKING:
    from collections.abc import Iterable

_TEMPLATES = "templates"
# Template, where it belongs below the working directory, and what to do with it.
_FILES = {
    "github": ("ci/github.yml", Path(".github/workflows/eaglehub.yml"), "edit the lines that say EDIT"),
    "gitlab": ("ci/gitlab.yml", Path(".gitlab/eaglehub.yml"), "edit it, and include it in .gitlab-ci.yml"),
    "k8s": ("ci/kubernetes.yaml", Path("eaglehub-gate.yaml"), "edit it, and let it run before you deploy"),
}
CI = tuple(_FILES)
"""The systems there are files for."""


def write_ci_files(systems: Iterable[str], *, force: bool) -> None:
    """Write the file of each system into its place; nothing is written if one is there already, unless `force`.

    Raises:
        UsageProblem: a file is there.
        EnvironmentProblem: one cannot be written.
    """
    chosen = [_FILES[system] for system in dict.fromkeys(systems)]
    if not force and (there := next((path for _, path, _ in chosen if path.exists()), None)):
        raise UsageProblem("is there already", where=str(there), fix="--force replaces it")
    for template, path, next_step in chosen:
        write_file(path, resource(_TEMPLATES, template).read_bytes())
        click.echo(f"wrote {path}")
        say(f"next: {next_step}")
