"""Acceptance where drafters are known to lose it: long contexts, other templates, odd system prompts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UsageProblem
from eaglehub.features import Condition, encode
from eaglehub.prompts import Conversation, load_suite
from eaglehub.report.verdict import Verdict
from eaglehub.scoring.suites import LONG, ODD, PLAIN, build_suites
from eaglehub.verify.checks import CheckResult
from eaglehub.verify.metrics import acceptance_of, paired_half_width
from eaglehub.verify.process import EngineRun
from eaglehub.verify.speculating import tolerance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from eaglehub.features import Sample
    from eaglehub.verify.checks import Check
    from eaglehub.verify.metrics import Acceptance
    from eaglehub.verify.process import Failure

# The families of a suite's name, up to the first `-`, that each check looks at.
FAMILIES = {
    "robust.long-context": (LONG,),
    "robust.templates": ("no_bos", "no_template", "neither", "other_template"),
    "robust.system-prompts": (ODD,),
}
_SHORTEST = 512
_OTHER_TEMPLATE = "### Instruction:\n{}\n\n### Response:"


@dataclass(frozen=True, slots=True)
class Gates:
    """What is asked of the suites.

    Attributes:
        min_ratios: least ratio to plain chat, by suite or family of suites.
        baseline: an earlier measurement by suite.
    """

    min_ratios: Mapping[str, float] = field(default_factory=dict)
    baseline: Mapping[str, Acceptance] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse suites that do not exist."""
        known = list(itertools.chain(*FAMILIES.values()))
        for name in self.min_ratios:
            if name.partition("-")[0] not in known:
                raise UsageProblem(f"there is no suite {name!r}", where="--min-ratio", fix=f"one of {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class Robustness:
    """One suite's acceptance.

    Attributes:
        suite: its name; `long-N` has prompts of at most N tokens.
        prompt_tokens: mean length of its prompts.
        ratio: its acceptance length over that of plain chat; None for plain chat itself.
        half_width: of the ratio's 95 % confidence interval.
        compared: the acceptance of the drafter that it is compared with; None without one.
    """

    suite: str
    prompt_tokens: float
    acceptance: Acceptance
    ratio: float | None
    half_width: float | None
    compared: Acceptance | None

    def to_json(self) -> dict[str, Any]:
        """As the report has it."""
        return {
            "suite": self.suite,
            "prompt_tokens": self.prompt_tokens,
            "acceptance": self.acceptance.to_json(),
            "ratio": self.ratio,
            "ratio_half_width": self.half_width,
            "compared": self.compared
            and {"acceptance": self.compared.to_json(), **_difference(self.acceptance, self.compared)},
        }

    def line(self) -> str:
        """For people."""
        low, high = self.acceptance.confidence_interval
        ratio = "" if self.ratio is None else f", x {self.ratio:.3f} +-{self.half_width:.3f} of plain"
        length = f"length {self.acceptance.acceptance_length:.3f} ({low:.3f} to {high:.3f})"
        return f"{self.suite}: {length}{ratio}{self._against()}, {self.prompt_tokens:.0f} tokens a prompt"

    def _against(self) -> str:
        if self.compared is None:
            return ""
        difference = _difference(self.acceptance, self.compared)
        return f", {difference['difference']:+.3f} +-{difference['half_width']:.3f} against the other drafter"


def robust_jobs(
    checks: Sequence[Check], prompts: Sequence[Conversation], tokenizer: Any, room: int, max_tokens: int
) -> list[dict[str, Any]]:
    """The worker's jobs for these checks, plain chat first; none if no check wants them.

    Args:
        checks: which are run.
        prompts: what all suites but the long ones are made of.
        tokenizer: the target's.
        room: most tokens of a prompt.
        max_tokens: of an answer.
    """
    wanted = {family for check in checks for family in FAMILIES.get(check.id, ())}
    if not wanted:
        return []
    suites = build_suites((PLAIN, *wanted - {LONG}), prompts, (), tokenizer)
    if "other_template" in wanted:
        suites["other_template"] = encode(map(_otherwise, prompts), tokenizer, Condition.NO_TEMPLATE)
    if LONG in wanted:
        suites |= _long(tokenizer, room)
    return [
        {"name": name, "prompts": [list(sample.prompt) for sample in samples], "max_tokens": max_tokens}
        for name, samples in suites.items()
    ]


def measure_robustness(
    run: EngineRun, other: EngineRun | Failure | None, jobs: Sequence[Mapping[str, Any]], count: int
) -> tuple[Robustness, ...]:
    """What the run says about each of the jobs, beside another drafter's; `count` is the number of drafted tokens."""
    measured = _by_suite(run, jobs, count)
    compared = _by_suite(other, jobs, count) if isinstance(other, EngineRun) else {}
    return tuple(_robustness(job, measured[job["name"]], measured[PLAIN], compared.get(job["name"])) for job in jobs)


def judge_robustness(check: Check, measured: Sequence[Robustness], gates: Gates) -> CheckResult:
    """Judge one check of the family; without gates it only reports."""
    own = [each for each in measured if each.suite.partition("-")[0] in FAMILIES[check.id]]
    if not own:
        return CheckResult(check, Verdict.SKIPPED, "the target has no template or system prompt to change, or no room")
    missed = [line for each in own for line in _missed(each, gates)]
    shown = ", ".join(f"{each.suite} {each.acceptance.acceptance_length:.3f} (x {each.ratio:.2f})" for each in own)
    return CheckResult(
        check,
        Verdict.FAIL if missed else Verdict.PASS,
        "; ".join(missed) or shown,
        ", ".join(f"{name} >= {ratio:g} of plain" for name, ratio in gates.min_ratios.items()),
        {"suites": [each.to_json() for each in own]},
    )


def _missed(measured: Robustness, gates: Gates) -> Iterator[str]:
    for name in {measured.suite, measured.suite.partition("-")[0]} & gates.min_ratios.keys():
        if measured.ratio is not None and measured.ratio < gates.min_ratios[name]:
            yield f"{measured.suite}: {measured.ratio:.3f} of plain chat, not {gates.min_ratios[name]:g}"
    ours = measured.acceptance
    yardsticks = {"the baseline": gates.baseline.get(measured.suite), "the other drafter": measured.compared}
    for name, theirs in yardsticks.items():
        if theirs and ours.acceptance_length < theirs.acceptance_length - tolerance(ours, theirs):
            lengths = f"acceptance length {ours.acceptance_length:.3f}, {name} {theirs.acceptance_length:.3f}"
            yield f"{measured.suite}: {lengths}"


def _by_suite(run: EngineRun, jobs: Sequence[Mapping[str, Any]], count: int) -> dict[str, Acceptance]:
    return {job["name"]: acceptance_of(run.jobs[job["name"]], count) for job in jobs}


def _robustness(
    job: Mapping[str, Any], acceptance: Acceptance, plain: Acceptance, compared: Acceptance | None
) -> Robustness:
    tokens = sum(map(len, job["prompts"])) / len(job["prompts"])
    if acceptance is plain:
        return Robustness(job["name"], tokens, acceptance, None, None, compared)
    ratio = acceptance.acceptance_length / plain.acceptance_length
    relative = [each.half_width / each.acceptance_length for each in (acceptance, plain)]
    half_width = ratio * sum(part**2 for part in relative) ** 0.5
    return Robustness(job["name"], tokens, acceptance, ratio, half_width, compared)


def _difference(acceptance: Acceptance, other: Acceptance) -> dict[str, float]:
    """Of the acceptance lengths, with half of its 95 % confidence interval, paired by prompt."""
    return {
        "difference": acceptance.acceptance_length - other.acceptance_length,
        "half_width": paired_half_width(acceptance, other),
    }


def _otherwise(conversation: Conversation) -> Conversation:
    """In a template that no chat model of today has."""
    texts = "\n\n".join(message["content"] for message in conversation.prompt)
    return Conversation(({"role": "user", "content": _OTHER_TEMPLATE.format(texts)},), conversation.category)


def _long(tokenizer: Any, room: int) -> dict[str, list[Sample]]:
    """Suites of doubling length up to what there is room for, from as many documents each as fit."""
    documents = [conversation.prompt[0]["content"] for conversation in load_suite("long")]
    lengths = [
        *itertools.takewhile(lambda length: length < room, (_SHORTEST << step for step in itertools.count())),
        room,
    ]
    suites: dict[str, list[Sample]] = {}
    for length in lengths:
        samples = [_packed(documents[first:] + documents[:first], tokenizer, length) for first in range(len(documents))]
        fitting = [sample for sample in samples if sample]
        if fitting and fitting not in suites.values():
            suites[f"{LONG}-{length}"] = fitting
    return suites


def _packed(documents: Sequence[str], tokenizer: Any, length: int) -> Sample | None:
    """The longest prompt of these documents in turn that has at most so many tokens; None if not even one fits."""
    longest = None
    for count in itertools.count(1):
        text = "\n\n".join(itertools.islice(itertools.cycle(documents), count))
        (sample,) = encode([Conversation(({"role": "user", "content": text},))], tokenizer)
        if len(sample.prompt) > length:
            return longest
        longest = sample
    raise AssertionError
