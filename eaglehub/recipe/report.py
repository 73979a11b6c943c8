"""The report of a recipe's run: every step's outcome, and every step's own report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.recipe.run import Status
from eaglehub.report.report import Report
from eaglehub.report.text import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from eaglehub.recipe.run import Outcome

_STYLES = {Status.RAN: "green", Status.FAILED: "bold red", Status.SKIPPED: "dim", Status.WOULD_RUN: "cyan"}


@dataclass(frozen=True, slots=True)
class RunReport(Report):
    """What became of each step of each chain."""

    kind: ClassVar[str] = "run"

    recipe: str
    chains: Mapping[str, Sequence[Outcome]]

    @property
    def exit_code(self) -> int:
        """1 when a step missed what was asked of it, else the code with which the first step failed."""
        codes = [outcome.exit_code for outcome in self._outcomes() if outcome.status is Status.FAILED]
        return 1 if 1 in codes else (codes or [0])[0] or 0

    def data(self) -> dict[str, Any]:
        """See `schemas/report-run.schema.json`."""
        return {
            "recipe": self.recipe,
            "chains": [
                {"name": name, "steps": [_step(outcome) for outcome in outcomes]}
                for name, outcomes in self.chains.items()
            ],
        }

    def render(self, console: Console) -> None:
        """Print a line a step, and where the outputs are."""
        width = max(len(outcome.step.name) for outcome in self._outcomes())
        for name, outcomes in self.chains.items():
            console.print(escaped(name), style="bold")
            for outcome in outcomes:
                console.print(f"  {outcome.step.name:<{width}}  ", end="")
                console.print(f"{outcome.status:<11}", style=_STYLES.get(outcome.status), end="")
                console.print(escaped(_remark(outcome)), soft_wrap=True)
        if all(outcome.status is Status.DONE for outcome in self._outcomes()):
            console.print("everything is done already")

    def _outcomes(self) -> list[Outcome]:
        return [outcome for outcomes in self.chains.values() for outcome in outcomes]


def _step(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.step.name,
        "command": outcome.step.verb.name,
        "status": str(outcome.status),
        "exit_code": outcome.exit_code,
        "seconds": outcome.seconds,
        "folder": outcome.folder,
        "report": outcome.report,
    }


def _remark(outcome: Outcome) -> str:
    if outcome.exit_code is None:
        return ""
    failed = f"exit code {outcome.exit_code}, " if outcome.exit_code else ""
    # What was found is printed as a result; whatever else goes wrong has been said on the error stream already.
    place = f"see {outcome.folder}/output.txt" if outcome.exit_code == 1 else outcome.folder
    return f"  {failed}{outcome.seconds:.0f} s, {place}"
