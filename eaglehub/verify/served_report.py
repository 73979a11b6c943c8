"""The report of `eaglehub verify --base-url`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.report.cases import CasesReport, Suite
from eaglehub.report.verdict import Verdict
from eaglehub.verify.shown import acceptance_lines, as_case, overall, render_checks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from eaglehub.verify.checks import CheckResult
    from eaglehub.verify.fast import Level
    from eaglehub.verify.metrics import Acceptance


@dataclass(frozen=True, slots=True)
class ServedReport(CasesReport):
    """What a running server did, without a word about where it is.

    Attributes:
        server: the model's name, vLLM's version and the longest sequence.
        acceptance: of everything that it drafted meanwhile; None when it drafted nothing.
        fast: its speed; empty when that was not asked for.
    """

    kind: ClassVar[str] = "server"

    server: Mapping[str, Any]
    results: tuple[CheckResult, ...]
    acceptance: Acceptance | None
    fast: tuple[Level, ...]
    prompts: Mapping[str, Any]
    seconds: float

    @property
    def exit_code(self) -> int:
        """1 when a check failed."""
        return int(overall(self.results) is Verdict.FAIL)

    def data(self) -> dict[str, Any]:
        """See `schemas/report-server.schema.json`."""
        return {
            "verdict": str(overall(self.results)),
            "checks": [result.to_json() for result in self.results],
            "acceptance": self.acceptance and self.acceptance.to_json(),
            "fast": [level.to_json() for level in self.fast],
            "server": dict(self.server),
            "prompts": dict(self.prompts),
            "seconds": self.seconds,
        }

    def suites(self) -> Iterator[Suite]:
        """A case a check."""
        yield Suite(str(self.server["model"]), tuple(map(as_case, self.results)))

    def render(self, console: Console) -> None:
        """Print a line for each check, what was measured, and the verdict."""
        numbers = [*acceptance_lines("acceptance", self.acceptance), *(level.line() for level in self.fast)]
        title = f"{self.server['model']} on a running vLLM {self.server['vllm']}"
        render_checks(console, title, self.results, [*numbers, f"time: {self.seconds:.0f} s"])
