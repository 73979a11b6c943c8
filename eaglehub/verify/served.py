"""Checking a running server: whether it speculates, how well, whether its output is the target's own, and its speed."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UsageProblem
from eaglehub.prompts import digest
from eaglehub.report.verdict import Verdict
from eaglehub.verify.checks import CATALOGUE, Check, CheckResult
from eaglehub.verify.fast import Level, Pace
from eaglehub.verify.lossless import NOISE
from eaglehub.verify.metrics import Acceptance
from eaglehub.verify.request import CONCURRENCIES, MIN_TIMED
from eaglehub.verify.served_report import ServedReport
from eaglehub.verify.server import Answer, Counters, Refused
from eaglehub.verify.speculating import run_speculating

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eaglehub.prompts import Conversation
    from eaglehub.verify.server import Server
    from eaglehub.verify.speculating import Thresholds

ANSWERS = Check("server.answers", "the server answers every prompt", frozenset(), False)
ALONE = Check("server.alone", "nobody else used it meanwhile", frozenset(), False)
RESCORED = Check("lossless.rescored", "greedy output is what the target prefers when it only reads", frozenset(), False)
_SPECULATING = ("speculating.drafts", "speculating.acceptance-length", "speculating.position-rates")
_AT_ONCE = 4
_RESCORED = 8
_SETTLE_SECONDS = 5.0
_WARM_UP_TOKENS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTask:
    """What is to be asked of a server.

    Attributes:
        model: its name; None where the server has only one.
        fast: whether to measure its speed.
    """

    server: Server
    model: str | None
    prompts: Sequence[Conversation]
    max_tokens: int
    thresholds: Thresholds
    fast: bool


def check_server(task: ServerTask, announce: Callable[[str], None]) -> ServedReport:
    """Ask the prompts, look at the counters before and after, and judge.

    Raises:
        HubProblem: the server cannot be reached, refuses or fails.
        UsageProblem: the model is not known, or a position that is never drafted has a threshold.
    """
    started = time.monotonic()
    server = task.server
    longest = server.choose_model(task.model)
    version = server.version()
    announce(f"asking {server.model}, {len(task.prompts)} prompts")
    before = server.counters()
    answers = _ask(task)
    after = _settled(server, before, sum(answer is not None for answer in answers))
    acceptance = _acceptance(before, after)
    _check_positions(task, acceptance)
    usable = [prompt for prompt, answer in zip(task.prompts, answers, strict=True) if answer]
    levels = _measure(task, usable, announce) if task.fast else ()
    return ServedReport(
        server={"model": _name(server.model), "vllm": version, "max_model_len": longest},
        results=tuple(_judge(task, answers, before, after, acceptance)),
        acceptance=acceptance if acceptance.num_drafts else None,
        fast=levels,
        prompts={
            "digest": digest(task.prompts),
            "count": len(task.prompts),
            "left_out": answers.count(None),
            "max_tokens": task.max_tokens,
            "categories": [prompt.category for prompt in task.prompts],
        },
        seconds=time.monotonic() - started,
    )


def _name(model: str) -> str:
    """Without the path: a server that was given a folder calls its model by that."""
    return PurePosixPath(model).name if model.startswith(("/", ".", "~")) else model


def _ask(task: ServerTask) -> list[Answer | None]:
    """The answers; None where the server refused, but not if it refused them all."""
    refusals: list[Refused] = []

    def ask(prompt: Conversation) -> Answer | None:
        try:
            return task.server.answer(prompt.prompt, task.max_tokens)
        except Refused as refusal:
            refusals.append(refusal)
            return None

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        answers = list(threads.map(ask, task.prompts))
    if refusals and not any(answers):
        raise refusals[0]
    return answers


def _settled(server: Server, before: Counters, asked: int) -> Counters:
    """The counters once they count our requests, which they do a moment after the answer."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    after = server.counters()
    while after.requests - before.requests < asked and time.monotonic() < deadline:
        time.sleep(0.1)
        after = server.counters()
    return after


def _acceptance(before: Counters, after: Counters) -> Acceptance:
    earlier = before.accepted_per_position or (0,) * len(after.accepted_per_position)
    accepted = tuple(new - old for new, old in zip(after.accepted_per_position, earlier, strict=True))
    drafts, tokens = after.drafts - before.drafts, after.draft_tokens - before.draft_tokens
    return Acceptance(drafts, tokens, accepted, ())


def _check_positions(task: ServerTask, acceptance: Acceptance) -> None:
    drafted = len(acceptance.accepted_per_position)
    for position in task.thresholds.min_position_rates if drafted else ():
        if not 0 <= position < drafted:
            fix = f"0 to {drafted - 1}"
            raise UsageProblem(f"there is no draft position {position}", where="--min-position-rate", fix=fix)


def _judge(
    task: ServerTask, answers: Sequence[Answer | None], before: Counters, after: Counters, acceptance: Acceptance
) -> list[CheckResult]:
    answered = [answer for answer in answers if answer]
    others = after.requests - before.requests - len(answered)
    heard = f"{len(answered)} of {len(answers)} prompts"
    results = [
        CheckResult(ANSWERS, Verdict.PASS if len(answered) == len(answers) else Verdict.WARN, heard),
        _judge_alone(others),
        _judge_rescored(task.server, answered),
    ]
    if not after.speculates:
        what = "it does not speculate: it keeps no counters of drafts"
        return [*results, CheckResult(CATALOGUE["speculating.drafts"], Verdict.FAIL, what, "drafts > 0")]
    return [*results, *(run_speculating(CATALOGUE[name], acceptance, task.thresholds, "") for name in _SPECULATING)]


def _judge_alone(others: int) -> CheckResult:
    if others <= 0:
        return CheckResult(ALONE, Verdict.PASS, "its counters show our requests only")
    return CheckResult(ALONE, Verdict.WARN, f"{others} other requests ended meanwhile, and its counters count them too")


def _judge_rescored(server: Server, answers: Sequence[Answer]) -> CheckResult:
    """Let the server score its own answers as prompts: a prompt is read by the target, whatever drafts for it."""
    noise = NOISE["bfloat16"]  # a server does not tell its dtype
    threshold = f"no other token is more than {noise:g} nats likelier"
    known = [(answer.prompt, answer.tokens) for answer in answers if answer.prompt and answer.tokens]
    try:
        margins = [server.margins(prompt, tokens) for prompt, tokens in known[:_RESCORED]]
    except Refused as refusal:
        return CheckResult(RESCORED, Verdict.SKIPPED, f"the server scores no prompts: {refusal.what}")
    if not margins:
        return CheckResult(RESCORED, Verdict.SKIPPED, "the server does not give the ids of tokens")
    count = sum(map(len, margins))
    ties = sum(0 < margin <= noise for each in margins for margin in each)
    worse = [
        {"prompt": number, "position": place, "margin": margin}
        for number, each in enumerate(margins)
        for place, margin in enumerate(each)
        if margin > noise
    ]
    summary = f"{len(margins)} sequences, {count} tokens, {ties} of them up to a tie"
    if worse:
        first = worse[0]
        summary = f"{len(worse)} of {count} tokens are not the target's; first answer {first['prompt']}, "
        summary += f"token {first['position']}, {first['margin']:.3g} nats from the best"
    evidence = {"sequences": len(margins), "tokens": count, "num_ties": ties, "differences": worse[:_RESCORED]}
    return CheckResult(RESCORED, Verdict.FAIL if worse else Verdict.PASS, summary, threshold, evidence)


def _measure(task: ServerTask, prompts: Sequence[Conversation], announce: Callable[[str], None]) -> tuple[Level, ...]:
    levels = []
    for concurrency in CONCURRENCIES:
        announce(f"measuring the speed at concurrency {concurrency}")
        _pace(task.server, prompts, concurrency, concurrency, _WARM_UP_TOKENS)
        pace = _pace(task.server, prompts, concurrency, max(MIN_TIMED, 2 * concurrency), task.max_tokens)
        levels.append(Level(concurrency, None, pace))
    return tuple(levels)


def _pace(server: Server, prompts: Sequence[Conversation], concurrency: int, count: int, max_tokens: int) -> Pace:
    chosen = list(itertools.islice(itertools.cycle(prompts), count))
    started = time.perf_counter()
    with ThreadPoolExecutor(concurrency) as threads:
        timed: list[Any] = list(threads.map(lambda prompt: server.time(prompt.prompt, max_tokens), chosen))
    return Pace(tuple(timed), time.perf_counter() - started)
