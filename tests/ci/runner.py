"""A GitHub runner, as far as a composite action sees one: inputs into env, files for outputs and the summary."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
_INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")
_COMMAND = re.compile(r"::([\w-]+)(?: [^:]*)?::")


@dataclass(frozen=True)
class Done:
    """What a step left behind.

    Attributes:
        commands: names of the workflow commands that the runner obeyed, in order.
    """

    exit_code: int
    stdout: str
    stderr: str
    outputs: dict[str, str]
    summary: str
    commands: list[str]


class Runner:
    """One job: its workspace is where the steps start."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.temp = folder / "temp"
        self.summary = folder / "summary.md"
        for made in (self.workspace, self.temp):
            made.mkdir()
        self.summary.touch()

    def run(self, inputs: dict[str, str], env: dict[str, str] | None = None) -> Done:
        """Run the action's one step; `command` is the eaglehub of these tests unless given."""
        [step] = ACTION["runs"]["steps"]
        given = {name: declared["default"] for name, declared in ACTION["inputs"].items()}
        given |= {"command": str(Path(sys.executable).with_name("eaglehub"))} | inputs
        output = self.temp / "output"
        output.write_text("")
        files = {"GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": self.summary, "RUNNER_TEMP": self.temp}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env=os.environ
            | {name: str(path) for name, path in files.items()}
            | {"GITHUB_ACTION_PATH": str(ROOT), "GITHUB_WORKSPACE": str(self.workspace)}
            | {name: _INPUT.sub(lambda found: given[found[1]], text) for name, text in step["env"].items()}
            | (env or {}),
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        commands = obeyed(done.stdout + "\n" + done.stderr)
        return Done(done.returncode, done.stdout, done.stderr, outputs, self.summary.read_text(), commands)


def obeyed(log: str) -> list[str]:
    """The commands in a step's log that a runner carries out; none between `stop-commands` and its token."""
    names: list[str] = []
    token = ""
    for line in log.splitlines():
        found = _COMMAND.match(line.lstrip())
        if token:
            token = "" if line.strip() == f"::{token}::" else token
        elif found and found[1] == "stop-commands":
            token = line.partition("::stop-commands::")[2]
        elif found:
            names.append(found[1])
    return names
