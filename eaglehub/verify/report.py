"""The report of `eaglehub verify`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub import __version__
from eaglehub.report.cases import Case, CasesReport, Suite
from eaglehub.report.text import escaped
from eaglehub.verify.checks import CheckResult, Verdict
from eaglehub.verify.process import EngineRun, Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from eaglehub.environment.hardware import Hardware
    from eaglehub.verify.metrics import Acceptance
    from eaglehub.verify.request import EngineOptions

REPORT_FILE = "eaglehub-verify.json"

_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.WARN: "yellow", Verdict.SKIPPED: "dim"}


@dataclass(frozen=True, slots=True)
class VerifyReport(CasesReport):
    """Verdict, evidence, and everything needed to measure it again.

    Attributes:
        results: one for each check that was asked for.
        facts: what vLLM said about itself.
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
        failed = any(result.verdict is Verdict.FAIL for result in self.results)
        return Verdict.FAIL if failed else Verdict.PASS

    @property
    def exit_code(self) -> int:
        """1 when a check failed."""
        return int(self.verdict is Verdict.FAIL)

    def data(self) -> dict[str, Any]:
        """See `schemas/report-verify.schema.json`."""
        return {
            "eaglehub": __version__,
            "verdict": str(self.verdict),
            "checks": [result.to_json() for result in self.results],
            "acceptance": self.acceptance and self.acceptance.to_json(),
            "compared_acceptance": self.compared_acceptance and self.compared_acceptance.to_json(),
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
        yield Suite(str(self.drafter["name"]), tuple(map(_case, self.results)))

    def render(self, console: Console) -> None:
        """Print the verdict, a line for each check, and the acceptance."""
        console.print(escaped(f"{self.drafter['name']} on {self.target['name']}"), style="bold", soft_wrap=True)
        width = max(len(result.check.id) for result in self.results)
        for result in self.results:
            console.print(f"  {result.verdict:<8}", style=_STYLES[result.verdict], end="")
            console.print(escaped(f"{result.check.id:<{width}}  {result.summary}"), soft_wrap=True)
            for line in _details(result) if result.verdict is Verdict.FAIL else ():
                console.print(escaped(f"    {line}"), soft_wrap=True)
        for line in self._numbers():
            console.print(escaped(line), soft_wrap=True)
        console.print(f"verdict: {self.verdict}", style=_STYLES[self.verdict])

    def _numbers(self) -> Iterator[str]:
        for name, acceptance in (("acceptance", self.acceptance), ("compared", self.compared_acceptance)):
            if acceptance:
                low, high = acceptance.confidence_interval
                yield f"{name}: length {acceptance.acceptance_length:.3f} ({low:.3f} to {high:.3f})"
                rates = " ".join(f"{rate:.3f}" for rate in acceptance.per_position_acceptance_rates)
                yield f"  per position {rates}; {acceptance.num_drafts} drafts"
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


def _case(result: CheckResult) -> Case:
    check, failed = result.check, result.verdict is Verdict.FAIL
    return Case(
        check.id,
        check.title,
        failure=result.summary if failed else "",
        skipped=result.summary if result.verdict is Verdict.SKIPPED else "",
        output=tuple(_details(result)) if failed else (result.summary,),
    )


def _details(result: CheckResult) -> Iterator[str]:
    """What helps with a failure."""
    if result.threshold:
        yield f"wanted: {result.threshold}"
    if fix := result.evidence.get("fix"):
        yield f"fix: {fix}"
    yield from (f"log: {line}" for line in result.evidence.get("log", ()))


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
