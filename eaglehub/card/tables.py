"""The card's tables: acceptance and checks, out of the stored reports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.report.text import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from eaglehub.card.facts import Facts

_NUMBERS = "--:"
_SUITES = {
    "plain": "plain chat",
    "long": "long context",
    "no_bos": "without the first token",
    "no_template": "without the chat template",
    "neither": "without either",
    "other_template": "another template",
    "odd_system": "odd system prompts",
}
_ROBUST = ("prompts", "tokens a prompt", "acceptance length", "of plain chat")
_REPO = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|"})


@dataclass(frozen=True, slots=True)
class Table:
    """A Markdown table with what it shows.

    Attributes:
        caption: a sentence before it.
        head: column titles.
        rows: cells as plain text.
        rule: how the columns after the first are aligned.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    rule: str = "---"

    def markdown(self) -> str:
        """The table alone."""
        rule = ["---", *[self.rule] * (len(self.head) - 1)]
        cells = [[plain(cell) for cell in row] for row in (self.head, *self.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))


def plain(text: object) -> str:
    """Text from a file as Markdown that shows just that."""
    return escaped(" ".join(str(text).split())).translate(_SPECIAL)


def code(text: object) -> str:
    """Text from a file as a code span."""
    return f"`{escaped(' '.join(str(text).split())).replace('`', '')}`"


def linked(name: object) -> str:
    """The name of a repository as a link to it; anything else as a code span."""
    text = str(name)
    return f"[{plain(text)}](https://huggingface.co/{text})" if _REPO.fullmatch(text) else code(text)


def served(facts: Facts) -> Table | None:
    """Acceptance in vLLM, of the drafter and of the one it was compared with."""
    report = facts.verification.report
    if not report or not report["acceptance"]:
        return None
    caption = (
        f"In vLLM {report['engine']['vllm']}, greedy, {report['prompts']['count']} prompts, answers of up to "
        f"{report['prompts']['max_tokens']} tokens:"
    )
    return _by_position(caption, served_sides(facts))


def served_sides(facts: Facts) -> dict[str, Any]:
    """What `served` shows: an acceptance, as the report has it, by the name of its drafter."""
    report = facts.verification.report
    if not report or not report["acceptance"]:
        return {}
    compared = report["compared_acceptance"] and {str(report["compared"]["name"]): report["compared_acceptance"]}
    return {"this drafter": report["acceptance"]} | (compared or {})


def changed(facts: Facts) -> list[Table]:
    """Acceptance before and after the upgrade and the training, offline."""
    return [
        _by_position(f"Offline, on the target's greedy answers, before and after the {step}:", sides)
        for step, sides in changed_sides(facts).items()
    ]


def changed_sides(facts: Facts) -> dict[str, dict[str, Any]]:
    """What `changed` shows, by what was done to the drafter, in the same form as `served_sides`."""
    provenance = facts.provenance or {}
    measured = (provenance.get("upgrade") or {}).get("measured")
    tuned = provenance.get("finetune")
    steps = {}
    if measured:
        steps["upgrade"] = {"before": measured["source"], "after": measured["upgraded"]}
    if tuned and tuned["kept"]:
        steps["training"] = {"before": tuned["before"], "after": tuned["after"]}
    return steps


def speed(facts: Facts) -> Table | None:
    """Tokens a second with and without the drafter, by how many requests ran at once."""
    report = facts.verification.report
    levels = [level for level in report["fast"] if level["target"]] if report else []
    if not levels:
        return None
    head = ["requests at once", "tokens/s a user without", "with", "ratio"]
    rows = [
        [
            str(level["concurrency"]),
            *(f"{level[side]['tokens_per_second_per_user']:.1f}" for side in ("target", "drafter")),
            _interval(level["speedup"]["value"], level["speedup"]) if level["speedup"] else "",
        ]
        for level in levels
    ]
    return Table("Output tokens a second as one user sees them:", head, rows, _NUMBERS)


def suites(facts: Facts) -> Table | None:
    """Acceptance by kind of prompt, offline."""
    report, sides = facts.evaluation.report, evaluated_suites(facts)
    if not report or not sides:
        return None
    names = report["drafter"]["suites"]
    rows = [[_suite(name), *[_length(side.get(name)) for side in sides.values()]] for name in names]
    caption = f"Acceptance length by kind of prompt, offline, {report['num_speculative_tokens']} draft tokens:"
    return Table(caption, ["prompts", *sides], rows, _NUMBERS)


def evaluated_suites(facts: Facts) -> dict[str, Mapping[str, Any]]:
    """What `suites` shows: the suites of both sides by the name of their drafter."""
    report = facts.evaluation.report
    if not report:
        return {}
    compare = {str(report["compare"]["name"]): report["compare"]["suites"]} if report["compare"] else {}
    return {"this drafter": report["drafter"]["suites"]} | compare


def robust(facts: Facts) -> Table | None:
    """Acceptance in vLLM with long contexts, other templates and odd system prompts."""
    report = facts.verification.report
    if not report or not report["robust"]:
        return None
    rows = [
        [
            _suite(name),
            f"{suite['prompt_tokens']:.0f}",
            _length(suite["acceptance"]),
            f"{suite['ratio']:.3f} ± {suite['ratio_half_width']:.3f}" if suite["ratio"] is not None else "",
            *([_difference(suite["compared"])] if suite["compared"] else []),
        ]
        for name, suite in robust_suites(facts).items()
    ]
    against = [f"against {report['compared']['name']}"] if report["robust"][0]["compared"] else []
    return Table("In vLLM, greedy:", [*_ROBUST, *against], rows, _NUMBERS)


def _difference(compared: Mapping[str, Any]) -> str:
    return f"{compared['difference']:+.3f} ± {compared['half_width']:.3f}"


def robust_suites(facts: Facts) -> dict[str, Mapping[str, Any]]:
    """What `robust` shows, by suite."""
    report = facts.verification.report
    return {str(suite["suite"]): suite for suite in report["robust"]} if report else {}


def checks(facts: Facts) -> Table | None:
    """What vLLM was checked for."""
    report = facts.verification.report
    if not report:
        return None
    rows = [[check["title"], check["verdict"], check["summary"]] for check in report["checks"]]
    return Table("", ["check", "verdict", "what was found"], [row for row in rows if row[1] != "skipped"])


def _by_position(caption: str, sides: Mapping[str, Any]) -> Table:
    depth = max(len(side["per_position_acceptance_rates"]) for side in sides.values())
    head = ["", "acceptance length", *[f"position {place}" for place in range(1, depth + 1)]]
    return Table(caption, head, [[name, _length(side), *_rates(side)] for name, side in sides.items()], _NUMBERS)


def _rates(side: Mapping[str, Any]) -> Iterable[str]:
    return (f"{rate:.3f}" for rate in side["per_position_acceptance_rates"])


def _suite(name: str) -> str:
    """A suite's name as people say it."""
    kind, dash, length = name.partition("-")
    return f"{_SUITES.get(kind, kind)}{f', up to {length} tokens' if dash else ''}"


def _length(side: Mapping[str, Any] | None) -> str:
    """With its interval at 95 %."""
    if side is None:
        return ""
    return _interval(side["acceptance_length"], side["confidence_interval"])


def _interval(value: float, bounds: Mapping[str, float]) -> str:
    return f"{value:.3f} ({bounds['low']:.3f} to {bounds['high']:.3f})"
