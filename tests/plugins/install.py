"""Plugins as pip leaves them behind, without pip: a folder on the path with the modules and their metadata."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.processes import run_process

if TYPE_CHECKING:
    import subprocess

SAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


def install_sample(site: Path) -> None:
    """The sample package as its pyproject.toml says."""
    project = tomllib.loads((SAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(SAMPLE / "eaglehub_acme", site / "eaglehub_acme", ignore=shutil.ignore_patterns("__pycache__"))
    write_metadata(site, project["name"], project["entry-points"])


def write_metadata(site: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    """What importlib.metadata reads of a package of version 0.1.0."""
    info = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 0.1.0\n")
    sections = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in groups.items()
    )
    (info / "entry_points.txt").write_text("\n".join(sections))


def run_with(site: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run eaglehub with that folder on its path."""
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    return run_process(*map(str, args), env={"PYTHONPATH": path})
