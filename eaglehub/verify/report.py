"""The report of `eaglehub verify`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.report.cases import CasesReport, Suite
from eaglehub.report.verdict import Verdict
from eaglehub.verify.process import EngineRun, Failure
from eaglehub.verify.shown import acceptance_lines, as_case, overall, render_checks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from eaglehub.environment.hardware import Hardware
    from eaglehub.verify.checks import CheckResult
    from eaglehub.verify.fast import Level
    from eaglehub.verify.metrics import Acceptance
    from eaglehub.verify.request import EngineOptions
    from eaglehub.verify.robust import Robustness

REPORT_FILE = "eaglehub-verify.json"


@dataclass(frozen=True, slots=True)
class VerifyReport(CasesReport):
    """Verdict, evidence, and everything needed to measure it again.

    Attributes:
        results: one for each check that was asked for.
        facts: what vLLM said about itself.
        robust: acceptance by suite; empty when that was not asked for.
        fast: what was measured of its speed; empty when that was not asked for.
        asked: the runner asked for and the time limit of an engine.
        prompts: their digest and how many; their texts only if asked for.
        runs: each engine run by name.
        seconds: of the whole verification.
    """

    kind: ClassVar[str] = "verify"

    drafter: Mapping[str, Any]
    target: Mapping[str, Any]
    compared: Mapping[str, Any] | None
    results: tuple[CheckResult, ...]
    acceptance: Acceptance | None
    compared_acceptance: Acceptance | None
    robust: tuple[Robustness, ...]
    fast: tuple[Level, ...]
    facts: Mapping[str, Any]
    hardware: Hardware
    options: EngineOptions
    asked: Mapping[str, Any]
    prompts: Mapping[str, Any]
    runs: Mapping[str, EngineRun | Failure]
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """Fail if any check failed."""
        return overall(self.results)

    @property
    def exit_code(self) -> int:
        """1 when a check failed."""
        return int(self.verdict is Verdict.FAIL)

    def data(self) -> dict[str, Any]:
        """See `schemas/report-verify.schema.json`."""
        return {
            "verdict": str(self.verdict),
            "checks": [result.to_json() for result in self.results],
            "acceptance": self.acceptance and self.acceptance.to_json(),
            "compared_acceptance": self.compared_acceptance and self.compared_acceptance.to_json(),
            "robust": [suite.to_json() for suite in self.robust],
            "fast": [level.to_json() for level in self.fast],
            "drafter": dict(self.drafter),
            "compared": self.compared and dict(self.compared),
            "target": dict(self.target),
            "prompts": dict(self.prompts),
            "config": {**self.options.to_json(), **self.asked},
            "engine": dict(self.facts),
            "hardware": asdict(self.hardware),
            "time": self._time(),
        }

    def suites(self) -> Iterator[Suite]:
        """A case a check."""
        yield Suite(str(self.drafter["name"]), tuple(map(as_case, self.results)))

    def render(self, console: Console) -> None:
        """Print the verdict, a line for each check, and the acceptance."""
        render_checks(console, f"{self.drafter['name']} on {self.target['name']}", self.results, self._numbers())

    def _numbers(self) -> Iterator[str]:
        yield from acceptance_lines("acceptance", self.acceptance)
        yield from acceptance_lines("compared", self.compared_acceptance)
        yield from (suite.line() for suite in self.robust)
        for level in self.fast:
            yield level.line()
        if self.facts:
            engine = f"vLLM {self.facts['vllm']}, {self.facts['runner']} runner, {self.facts['platform']}"
            yield f"engine: {engine}, {self.facts['dtype']}"
        time = self._time()
        yield f"time: {time['total_s']:.0f} s, of which vLLM {time['vllm_s']:.0f} s"

    def _time(self) -> dict[str, Any]:
        runs = [_run_time(name, run) for name, run in self.runs.items()]
        return {
            "total_s": self.seconds,
            "vllm_s": sum(run["import_s"] + run["start_s"] + run["generate_s"] for run in runs),
            "runs": runs,
        }


def _run_time(name: str, run: EngineRun | Failure) -> dict[str, Any]:
    """Where the time of one engine run went; a run that failed counts whole as start."""
    if isinstance(run, Failure):
        return {
            "name": name,
            "import_s": 0.0,
            "start_s": run.seconds,
            "generate_s": 0.0,
            "jobs": [],
            "process_s": run.seconds,
        }
    jobs = [{"name": job, "seconds": result.get("seconds", 0.0)} for job, result in run.jobs.items()]
    return {
        "name": name,
        "import_s": run.stages["import"],
        "start_s": run.stages["start"],
        "generate_s": sum(job["seconds"] for job in jobs),
        "jobs": jobs,
        "process_s": run.seconds,
    }
