"""How results of checks and numbers are shown to a person, whatever was checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.report.cases import Case
from eaglehub.report.text import STYLES, escaped, print_verdict
from eaglehub.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from eaglehub.verify.checks import CheckResult
    from eaglehub.verify.metrics import Acceptance


def overall(results: Iterable[CheckResult]) -> Verdict:
    """Fail if any check failed."""
    return Verdict.FAIL if any(result.verdict is Verdict.FAIL for result in results) else Verdict.PASS


def render_checks(console: Console, title: str, results: Sequence[CheckResult], numbers: Iterable[str]) -> None:
    """Print the title, a line for each check, what was measured, and the verdict."""
    console.print(escaped(title), style="bold", soft_wrap=True)
    width = max(len(result.check.id) for result in results)
    for result in results:
        print_verdict(console, result.verdict, f"{result.check.id:<{width}}  {result.summary}")
        for line in _details(result) if result.verdict is Verdict.FAIL else ():
            console.print(escaped(f"    {line}"), soft_wrap=True)
    for line in numbers:
        console.print(escaped(line), soft_wrap=True)
    verdict = overall(results)
    console.print(f"verdict: {verdict}", style=STYLES[verdict])


def acceptance_lines(name: str, acceptance: Acceptance | None) -> Iterator[str]:
    """The length with its interval, and the rates."""
    if acceptance:
        low, high = acceptance.confidence_interval
        yield f"{name}: length {acceptance.acceptance_length:.3f} ({low:.3f} to {high:.3f})"
        rates = " ".join(f"{rate:.3f}" for rate in acceptance.per_position_acceptance_rates)
        yield f"  per position {rates}; {acceptance.num_drafts} drafts"


def as_case(result: CheckResult) -> Case:
    """For JUnit."""
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
