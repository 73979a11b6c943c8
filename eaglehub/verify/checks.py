"""The checks of a verification: a catalogue as data, and what each of them found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from eaglehub.report.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Check:
    """What can be checked.

    Attributes:
        id: `family.name`; `--select` and `--ignore` take it or the family.
        jobs: the engine's jobs that it looks at.
        needs_target: whether it compares with the target alone.
        on_request: whether it is left out unless it is asked for, as it takes long.
    """

    id: str
    title: str
    jobs: frozenset[str]
    needs_target: bool
    on_request: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found.

    Attributes:
        summary: one line; the reason where it was skipped.
        threshold: what passes, in words; empty where nothing is measured.
        evidence: JSON-ready numbers behind the verdict.
    """

    check: Check
    verdict: Verdict
    summary: str
    threshold: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As the report has it."""
        return {
            "id": self.check.id,
            "title": self.check.title,
            "verdict": str(self.verdict),
            "summary": self.summary,
            "threshold": self.threshold,
            "evidence": dict(self.evidence),
        }


def _lossless(name: str, title: str, *jobs: str) -> Check:
    return Check(f"lossless.{name}", title, frozenset(jobs), True)


def _speculating(name: str, title: str) -> Check:
    return Check(f"speculating.{name}", title, frozenset({"batch"}), False)


def _robust(name: str, title: str) -> Check:
    return Check(f"robust.{name}", title, frozenset(), False, on_request=True)


ENGINE = Check("engine.drafter", "vLLM serves the drafter", frozenset(), False)
CATALOGUE = {
    check.id: check
    for check in (
        ENGINE,
        Check("loaded.weights", "vLLM holds every tensor of the file", frozenset(), False),
        Check("loaded.flags", "vLLM's drafter has the flags of the file", frozenset(), False),
        _lossless("batch", "greedy output is the target's own, many prompts at once", "batch"),
        _lossless("single", "greedy output is the target's own, one prompt at a time", "single"),
        _lossless("chunked-prefill", "the same with prompts that are prefilled in pieces", "long"),
        _lossless("prefix-caching", "the same with prompts that are partly cached", "long", "repeat"),
        _lossless("stop-string", "the same with a stop string", "batch", "stop"),
        _lossless("json-schema", "the same under a JSON schema", "json"),
        _lossless("sampling", "sampled tokens have the target's distribution", "sampling"),
        Check("faithful.drafts", "vLLM drafts what the file says", frozenset({"batch"}), False),
        _speculating("drafts", "the engine drafts at all"),
        _speculating("acceptance-length", "enough drafted tokens are accepted"),
        _speculating("position-rates", "enough tokens are accepted at each position"),
        _speculating("baseline", "no worse than an earlier report"),
        _speculating("compare", "no worse than another drafter on the same prompts"),
        Check("diagnosis.cause", "no other reading of the file drafts better", frozenset({"batch"}), False),
        _robust("long-context", "tokens are accepted in long contexts"),
        _robust("templates", "tokens are accepted without the chat template, and with another one"),
        _robust("system-prompts", "tokens are accepted under odd system prompts"),
        Check("fast.speedup", "tokens come faster with the drafter", frozenset({"fast"}), True, on_request=True),
    )
}


def choose_checks(select: Sequence[str], ignore: Sequence[str], switched_on: Collection[str] = ()) -> list[Check]:
    """The checks that are asked for, in the catalogue's order; `engine.drafter` is always among them.

    Args:
        select: checks or families; all that are not on request when empty.
        ignore: checks or families to leave out.
        switched_on: checks, or families of them, that another option than `--select` asks for.

    Raises:
        UsageProblem: a name is neither a check's nor a family's.
    """
    usual = {check.id for check in CATALOGUE.values() if not check.on_request}
    chosen = (_expand(select, "--select") if select else usual) | _expand(switched_on, "")
    chosen = (chosen - _expand(ignore, "--ignore")) | {ENGINE.id}
    return [check for check in CATALOGUE.values() if check.id in chosen]


def _expand(names: Collection[str], option: str) -> set[str]:
    expanded = set()
    for name in names:
        matching = {check for check in CATALOGUE if name in (check, check.partition(".")[0])}
        if not matching:
            raise UsageProblem(f"no check is called {name!r}", where=option, fix=f"known: {', '.join(CATALOGUE)}")
        expanded |= matching
    return expanded
