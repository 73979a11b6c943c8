"""The engine runs of one verification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.drafter.target import read_target
from eaglehub.errors import EnvironmentProblem
from eaglehub.features.encode import load_tokenizer
from eaglehub.verify.inspection import INSIDE, Inspection
from eaglehub.verify.process import EngineRun, Failure, run_engine
from eaglehub.verify.request import build_jobs, engine_request, look_inside, model_len
from eaglehub.verify.robust import FAMILIES as ROBUST
from eaglehub.verify.robust import Robustness, measure_robustness, robust_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from eaglehub.drafter.target import Target
    from eaglehub.verify.diagnosis import Differences
    from eaglehub.verify.verify import Task


class Engines:
    """The engine runs of one task, each configuration started once."""

    def __init__(self, task: Task, announce: Callable[[str], None], record: Path) -> None:
        self.task = task
        self.announce = announce
        self.record = record
        self.target_config = read_target(task.target)
        self.suites = _suites(task, self.target_config)
        self.runs: dict[str, EngineRun | Failure] = {}

    def target(self) -> EngineRun:
        """Run the target alone.

        Raises:
            EnvironmentProblem: it does not run.
        """
        wanted = {job for check in self.task.checks if check.needs_target for job in check.jobs}
        run = self._run("target", None, wanted)
        if isinstance(run, Failure):
            what = f"vLLM does not run the target alone: {run.message}: {run.cause.what}"
            end = f"its log ends: {run.log[-1]}" if run.log else ""
            raise EnvironmentProblem(what, where=run.stage, fix=run.cause.fix or end)
        return run

    def drafter(self, folder: Path, name: str) -> EngineRun | Failure:
        """Run the target with a drafter; one that is only compared with has only its acceptance measured."""
        wanted = {job for check in self.task.checks for job in check.jobs} if name == "drafter" else {"batch"}
        return self._run(name, folder, wanted)

    def inspection(self, drafter: EngineRun | Failure, found: Sequence[Differences]) -> Inspection | None:
        """What looks inside the drafter's run, where there is one."""
        if isinstance(drafter, Failure):
            return None
        return Inspection(self.task.drafter, self.target_config, drafter, self.record, found)

    def robustness(self, drafter: EngineRun | Failure, other: EngineRun | Failure | None) -> tuple[Robustness, ...]:
        """Acceptance by suite, where it was measured."""
        if isinstance(drafter, Failure):
            return ()
        return measure_robustness(drafter, other, self.suites, self.task.options.num_speculative_tokens)

    def _run(self, name: str, drafter: Path | None, wanted: set[str]) -> EngineRun | Failure:
        task = self.task
        self.announce(f"running vLLM with {'the target alone' if drafter is None else f'the drafter {drafter.name}'}")
        jobs = build_jobs(wanted, task.prompts, task.max_tokens) + (self.suites if drafter else [])
        if "stop" in wanted and "target" in self.runs:
            _use_stops_of(self.runs["target"], jobs)
        request = engine_request(task.options, task.target, self.target_config, jobs, drafter)
        if name == "drafter" and any(check.id in INSIDE for check in task.checks):
            look_inside(request, self.record)
        self.runs[name] = run_engine(request, task.interpreter)
        return self.runs[name]


def _suites(task: Task, target: Target) -> list[dict[str, Any]]:
    """The jobs of the robust checks; most runs have none, and need no tokenizer here."""
    if not any(check.id in ROBUST for check in task.checks):
        return []
    tokenizer = load_tokenizer(task.target, trust_remote_code=task.options.trust_remote_code)
    room = model_len(task.options, target) - task.max_tokens - task.options.num_speculative_tokens - 1
    return robust_jobs(task.checks, task.prompts, tokenizer, room, task.max_tokens)


def _use_stops_of(run: EngineRun | Failure, jobs: list[dict[str, Any]]) -> None:
    """The drafter's run stops at the strings that were taken from the target's answers, whatever its own are."""
    if isinstance(run, EngineRun) and "outputs" in run.jobs.get("stop", {}):
        stops = [output and output["samples"][0]["stop"] for output in run.jobs["stop"]["outputs"]]
        for job in jobs:
            if job["name"] == "stop":
                del job["stop_from"]
                job["stop"] = stops
