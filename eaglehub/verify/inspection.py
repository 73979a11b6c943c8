"""The checks that look inside: each reads what it needs of the drafter once, and says why where it cannot."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import open_checkpoint
from eaglehub.errors import EaglehubError
from eaglehub.report.verdict import Verdict
from eaglehub.scoring.candidate import read_candidate
from eaglehub.verify.checks import CheckResult
from eaglehub.verify.diagnosis import judge_cause
from eaglehub.verify.loaded import judge_flags, judge_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from eaglehub.drafter.target import Target
    from eaglehub.scoring.candidate import Candidate
    from eaglehub.verify.checks import Check
    from eaglehub.verify.diagnosis import Differences, Measured
    from eaglehub.verify.process import EngineRun
    from eaglehub.verify.reference import Reference

INSIDE = frozenset({"loaded.weights", "loaded.flags", "faithful.drafts", "diagnosis.cause"})


class Inspection:
    """A drafter's file, and the engine that ran it.

    Args:
        folder: the drafter's.
        target: what it drafts for.
        run: the engine with it.
        record: the file into which the run's batch was recorded.
        found: how the drafter differs from those that it is compared with.
    """

    def __init__(
        self, folder: Path, target: Target, run: EngineRun, record: Path, found: Sequence[Differences]
    ) -> None:
        self.folder, self.target, self.run, self.record, self.found = folder, target, run, record, found

    def judge(self, check: Check, before: Sequence[CheckResult]) -> CheckResult:
        """Judge one of these checks; `before` are the results so far."""
        judges: dict[str, Callable[[], CheckResult]] = {
            "loaded.weights": lambda: judge_weights(check, self._checkpoint, self.run.inside, self.run.facts["dtype"]),
            "loaded.flags": lambda: judge_flags(check, self._candidate, self.target, self.run.inside),
            "faithful.drafts": lambda: self._judge_drafts(check),
            "diagnosis.cause": lambda: judge_cause(check, self._measured, self.found, _missed(before)),
        }
        return judges[check.id]()

    def _judge_drafts(self, check: Check) -> CheckResult:
        if isinstance(self._reference, str):
            return CheckResult(check, Verdict.SKIPPED, self._reference)
        from eaglehub.verify.faithful import judge_drafts

        return judge_drafts(check, self._reference, self.run.facts["dtype"])

    @cached_property
    def _checkpoint(self) -> Any:
        return open_checkpoint(self.folder)

    @cached_property
    def _candidate(self) -> Candidate | str:
        try:
            return read_candidate(self._checkpoint, self.target)
        except EaglehubError as error:
            return f"the drafter cannot be read: {error}"

    @cached_property
    def _reference(self) -> Reference | str:
        if isinstance(self._candidate, str):
            return self._candidate
        from eaglehub.verify.reference import load_reference

        try:
            return load_reference(self._candidate, self.target, self.run, self.record)
        except EaglehubError as error:
            return f"there is nothing to compare with: {error}"

    @cached_property
    def _measured(self) -> list[Measured] | str:
        if isinstance(self._reference, str):
            return self._reference
        from eaglehub.verify.readings import measure_readings

        return measure_readings(self._reference, self.target)


def _missed(results: Sequence[CheckResult]) -> list[str]:
    families = ("speculating.", "robust.")
    failed = (result.check.id for result in results if result.verdict is Verdict.FAIL)
    return [check for check in failed if check.startswith(families)]
