"""Verifying a drafter: engine runs first, then checks on what they gave."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eaglehub.checkpoint import open_checkpoint
from eaglehub.environment.hardware import describe_hardware
from eaglehub.errors import UsageProblem
from eaglehub.prompts import digest
from eaglehub.report.verdict import Verdict
from eaglehub.verify.checks import ENGINE, CheckResult
from eaglehub.verify.diagnosis import Differences, differences
from eaglehub.verify.engines import Engines
from eaglehub.verify.fast import Level, compare_levels, judge_speedup
from eaglehub.verify.identity import describe_drafter, describe_target, written_config
from eaglehub.verify.inspection import INSIDE, Inspection
from eaglehub.verify.lossless import LOSSLESS, run_lossless
from eaglehub.verify.metrics import Acceptance, acceptance_of
from eaglehub.verify.process import EngineRun, Failure
from eaglehub.verify.report import VerifyReport
from eaglehub.verify.robust import FAMILIES as ROBUST
from eaglehub.verify.robust import Gates, Robustness, judge_robustness
from eaglehub.verify.speculating import Thresholds, run_speculating

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eaglehub.prompts import Conversation
    from eaglehub.verify.baseline import Baseline
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
        baseline: an earlier report.
        gates: what is asked of acceptance under other conditions.
        min_speedups: least speedup by concurrency.
        include_text: whether the report may hold prompts and answers.
    """

    drafter: Path
    target: Path
    other: Path | None
    prompts: Sequence[Conversation]
    max_tokens: int
    checks: Sequence[Check]
    thresholds: Thresholds
    baseline: Baseline | None
    gates: Gates
    min_speedups: Mapping[int, float]
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
    with tempfile.TemporaryDirectory(prefix="eaglehub-record-") as scratch:
        return _verify(task, announce, Path(scratch, "record"))


def _verify(task: Task, announce: Callable[[str], None], record: Path) -> VerifyReport:
    started = time.monotonic()
    engines = Engines(task, announce, record)
    drafter_identity = describe_drafter(open_checkpoint(task.drafter))
    other_identity = describe_drafter(open_checkpoint(task.other)) if task.other else None
    _check_thresholds(task)
    target = engines.target() if any(check.needs_target for check in task.checks) else None
    drafter = engines.drafter(task.drafter, "drafter")
    if isinstance(drafter, Failure):
        # Whose fault it is, only the target alone can tell.
        target = target or engines.target()
    other = engines.drafter(task.other, "compare") if task.other and isinstance(drafter, EngineRun) else None
    runs = _Runs(target, drafter, other)
    found = _differences(task, drafter_identity, other_identity)
    robust = engines.robustness(drafter, other)
    results = _judge_all(task, runs, engines.inspection(drafter, found), robust)
    return VerifyReport(
        drafter=drafter_identity,
        target=describe_target(engines.target_config, task.target),
        compared=other_identity,
        results=results,
        acceptance=_acceptance(drafter, task),
        compared_acceptance=_acceptance(other, task),
        robust=robust,
        fast=_levels(target, drafter),
        facts=next(run.facts for run in (drafter, target) if isinstance(run, EngineRun)),
        hardware=describe_hardware(),
        options=task.options,
        asked={"runner": task.interpreter.runner, "timeout_s": task.interpreter.timeout},
        prompts=_prompts(task, target if isinstance(target, EngineRun) else drafter),
        runs=engines.runs,
        seconds=time.monotonic() - started,
    )


class _Runs(NamedTuple):
    """The engine runs that checks look at."""

    target: EngineRun | None
    drafter: EngineRun | Failure
    other: EngineRun | Failure | None


def _differences(task: Task, ours: Mapping[str, Any], theirs: Mapping[str, Any] | None) -> list[Differences]:
    found = [differences(ours, task.baseline.drafter, "the baseline", binding=True)] if task.baseline else []
    found += [differences(ours, theirs, "the other drafter")] if theirs else []
    written = written_config(task.drafter)
    # Which tensors were written is not kept: they count as unchanged.
    return found + ([differences(ours, {**ours, "config": written}, "what eaglehub wrote")] if written else [])


def _check_thresholds(task: Task) -> None:
    count = task.options.num_speculative_tokens
    for position in task.thresholds.min_position_rates:
        if not 0 <= position < count:
            raise UsageProblem(
                f"there is no draft position {position}", where="--min-position-rate", fix=f"0 to {count - 1}"
            )


def _judge_all(
    task: Task, runs: _Runs, inspection: Inspection | None, robust: Sequence[Robustness]
) -> tuple[CheckResult, ...]:
    results: list[CheckResult] = []
    for check in task.checks:
        if inspection and check.id in INSIDE:
            results.append(inspection.judge(check, results))
        elif inspection and check.id in ROBUST:
            results.append(judge_robustness(check, robust, task.gates))
        else:
            results.append(_judge(check, task, *runs))
    return tuple(results)


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
    if check.id == "fast.speedup":
        return judge_speedup(check, _levels(target, drafter), task.min_speedups)
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
        return CheckResult(ENGINE, Verdict.PASS, "it starts and generates")
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


def _levels(target: EngineRun | None, drafter: EngineRun | Failure) -> tuple[Level, ...]:
    if target and isinstance(drafter, EngineRun) and "fast" in drafter.jobs:
        return compare_levels(target.jobs["fast"], drafter.jobs["fast"])
    return ()


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
