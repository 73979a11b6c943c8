"""Verifying a drafter: engine runs first, then checks on what they gave."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import open_checkpoint
from eaglehub.drafter.target import read_target
from eaglehub.environment.hardware import describe_hardware
from eaglehub.errors import EnvironmentProblem, UsageProblem
from eaglehub.prompts import digest
from eaglehub.verify.checks import ENGINE, CheckResult, Verdict
from eaglehub.verify.identity import describe_drafter, describe_target
from eaglehub.verify.lossless import LOSSLESS, run_lossless
from eaglehub.verify.metrics import Acceptance, acceptance_of
from eaglehub.verify.process import EngineRun, Failure, run_engine
from eaglehub.verify.report import VerifyReport
from eaglehub.verify.request import build_jobs, engine_request
from eaglehub.verify.speculating import Thresholds, run_speculating

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from eaglehub.prompts import Conversation
    from eaglehub.verify.checks import Check
    from eaglehub.verify.process import Interpreter
    from eaglehub.verify.request import EngineOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be verified, and how.

    Attributes:
        drafter: its folder.
        target: the target's folder.
        other: the folder of a drafter to compare with.
        prompts: what the target is asked.
        max_tokens: tokens to generate for each prompt.
        checks: which.
        include_text: whether the report may hold prompts and answers.
    """

    drafter: Path
    target: Path
    other: Path | None
    prompts: Sequence[Conversation]
    max_tokens: int
    checks: Sequence[Check]
    thresholds: Thresholds
    options: EngineOptions
    interpreter: Interpreter
    include_text: bool


def verify(task: Task, announce: Callable[[str], None]) -> VerifyReport:
    """Run the engine with and without the drafter, and judge.

    Args:
        task: what to do.
        announce: told what begins, as each run takes minutes.

    Raises:
        UnusableInput: the drafter or the target cannot be read.
        UsageProblem: impossible thresholds.
        EnvironmentProblem: no vLLM, or the target alone does not run.
    """
    started = time.monotonic()
    engines = _Engines(task, announce)
    drafter_identity = describe_drafter(open_checkpoint(task.drafter))
    other_identity = describe_drafter(open_checkpoint(task.other)) if task.other else None
    _check_thresholds(task)
    target = engines.target() if any(check.needs_target for check in task.checks) else None
    drafter = engines.drafter(task.drafter, "drafter")
    if isinstance(drafter, Failure):
        # Whose fault it is, only the target alone can tell.
        target = target or engines.target()
    other = engines.drafter(task.other, "compare") if task.other and isinstance(drafter, EngineRun) else None
    results = [_judge(check, task, target, drafter, other) for check in task.checks]
    return VerifyReport(
        drafter=drafter_identity,
        target=describe_target(engines.target_config, task.target),
        compared=other_identity,
        results=tuple(results),
        acceptance=_acceptance(drafter, task),
        compared_acceptance=_acceptance(other, task),
        facts=next(run.facts for run in (drafter, target) if isinstance(run, EngineRun)),
        hardware=describe_hardware(),
        options=task.options,
        asked={"runner": task.interpreter.runner, "timeout_s": task.interpreter.timeout},
        prompts=_prompts(task, target if isinstance(target, EngineRun) else drafter),
        runs=engines.runs,
        seconds=time.monotonic() - started,
    )


class _Engines:
    """The engine runs of one task, each configuration started once."""

    def __init__(self, task: Task, announce: Callable[[str], None]) -> None:
        self.task = task
        self.announce = announce
        self.target_config = read_target(task.target)
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

    def _run(self, name: str, drafter: Path | None, wanted: set[str]) -> EngineRun | Failure:
        task = self.task
        self.announce(f"running vLLM with {'the target alone' if drafter is None else f'the drafter {drafter.name}'}")
        jobs = build_jobs(wanted, task.prompts, task.max_tokens)
        if "stop" in wanted and "target" in self.runs:
            _use_stops_of(self.runs["target"], jobs)
        request = engine_request(task.options, task.target, self.target_config, jobs, drafter)
        self.runs[name] = run_engine(request, task.interpreter)
        return self.runs[name]


def _use_stops_of(run: EngineRun | Failure, jobs: list[dict[str, Any]]) -> None:
    """The drafter's run stops at the strings that were taken from the target's answers, whatever its own are."""
    if isinstance(run, EngineRun) and "outputs" in run.jobs.get("stop", {}):
        stops = [output and output["samples"][0]["stop"] for output in run.jobs["stop"]["outputs"]]
        for job in jobs:
            if job["name"] == "stop":
                del job["stop_from"]
                job["stop"] = stops


def _check_thresholds(task: Task) -> None:
    count = task.options.num_speculative_tokens
    for position in task.thresholds.min_position_rates:
        if not 0 <= position < count:
            raise UsageProblem(
                f"there is no draft position {position}", where="--min-position-rate", fix=f"0 to {count - 1}"
            )


def _judge(
    check: Check,
    task: Task,
    target: EngineRun | None,
    drafter: EngineRun | Failure,
    other: EngineRun | Failure | None,
) -> CheckResult:
    if check is ENGINE:
        return _judge_engine(drafter)
    if isinstance(drafter, Failure):
        return CheckResult(check, Verdict.SKIPPED, "vLLM does not run with the drafter")
    if check.id in LOSSLESS and target:
        return run_lossless(check, target, drafter)
    compared: Acceptance | str = "no --compare is given"
    if isinstance(other, EngineRun):
        compared = acceptance_of(other.jobs["batch"], task.options.num_speculative_tokens)
    elif other and check.id == "speculating.compare":
        what = f"vLLM does not run with the other drafter: {other.message}: {other.cause.what}"
        return CheckResult(check, Verdict.FAIL, what)
    acceptance = acceptance_of(drafter.jobs["batch"], task.options.num_speculative_tokens)
    return run_speculating(check, acceptance, task.thresholds, compared)


def _judge_engine(drafter: EngineRun | Failure) -> CheckResult:
    if isinstance(drafter, EngineRun):
        return CheckResult(ENGINE, Verdict.PASS, f"it starts and generates in {drafter.seconds:.0f} s")
    return CheckResult(
        ENGINE,
        Verdict.FAIL,
        f"{drafter.message}: {drafter.cause.what}",
        evidence={
            "stage": drafter.stage,
            "message": drafter.message,
            "cause": drafter.cause.what,
            "fix": drafter.cause.fix,
            "log": list(drafter.log),
            "seconds": drafter.seconds,
        },
    )


def _acceptance(run: EngineRun | Failure | None, task: Task) -> Acceptance | None:
    if isinstance(run, EngineRun) and "outputs" in run.jobs.get("batch", {}):
        return acceptance_of(run.jobs["batch"], task.options.num_speculative_tokens)
    return None


def _prompts(task: Task, run: EngineRun | Failure) -> dict[str, Any]:
    outputs = run.jobs.get("batch", {}).get("outputs") if isinstance(run, EngineRun) else None
    described = {
        "digest": digest(task.prompts),
        "count": len(task.prompts),
        "left_out": sum(output is None for output in outputs) if outputs else 0,
        "max_tokens": task.max_tokens,
        "categories": [prompt.category for prompt in task.prompts],
    }
    if not task.include_text:
        return described
    answers = [output and output["samples"][0]["text"] for output in outputs or [None] * len(task.prompts)]
    return described | {
        "texts": [
            {"messages": list(prompt.prompt), "answer": answer}
            for prompt, answer in zip(task.prompts, answers, strict=True)
        ]
    }
