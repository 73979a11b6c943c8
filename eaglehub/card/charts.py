"""The card's charts, as PNG files that are published beside it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from eaglehub.card.tables import changed_sides, evaluated_suites, robust_suites, served_sides
from eaglehub.errors import EnvironmentProblem
from eaglehub.report.figures import figure_class
from eaglehub.scoring.suites import LONG, PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eaglehub.card.facts import Facts

ACCEPTANCE = "eaglehub-acceptance.png"
SUITES = "eaglehub-suites.png"
CONTEXTS = "eaglehub-contexts.png"
CONDITIONS = "eaglehub-conditions.png"
CHARTS = (ACCEPTANCE, SUITES, CONTEXTS, CONDITIONS)


def charts_of(facts: Facts, warn: Callable[[str], None]) -> dict[str, bytes]:
    """The charts by file name; none where matplotlib is missing, which is said."""
    try:
        return draw_charts(facts)
    except EnvironmentProblem as problem:
        warn(f"the card has no charts: {problem}")
        return {}


def draw_charts(facts: Facts) -> dict[str, bytes]:
    """The charts that the reports give, by file name.

    Raises:
        EnvironmentProblem: matplotlib is missing.
    """
    drawn: dict[str, bytes] = {}
    last = next(reversed(changed_sides(facts).values()), {})
    if sides := served_sides(facts) or last:
        drawn[ACCEPTANCE] = _png(_draw_positions(sides))
    if suites := evaluated_suites(facts):
        drawn[SUITES] = _png(_draw_suites(suites))
    robust = robust_suites(facts)
    contexts = {name: suite for name, suite in robust.items() if name == PLAIN or name.startswith(f"{LONG}-")}
    others = {name: suite["acceptance"] for name, suite in robust.items() if name == PLAIN or name not in contexts}
    if len(contexts) > 1:
        drawn[CONTEXTS] = _png(_draw_contexts(contexts))
    if len(others) > 1:
        drawn[CONDITIONS] = _png(_draw_suites({"this drafter": others}))
    return drawn


def _draw_positions(sides: Mapping[str, Any]) -> Any:
    figure, axes = _axes("draft position", "accepted, of all drafts")
    for name, side in sides.items():
        rates = side["per_position_acceptance_rates"]
        axes.plot(range(1, len(rates) + 1), rates, marker="o", label=name)
        axes.set_xticks(range(1, len(rates) + 1))
    axes.set_ylim(0, 1)
    _name(axes, sides)
    return figure


def _draw_suites(sides: Mapping[str, Mapping[str, Any]]) -> Any:
    figure, axes = _axes("", "acceptance length")
    for label, suites in sides.items():
        axes.errorbar([*suites], *_lengths(suites), fmt="o", capsize=3, label=label)
    axes.set_ylim(bottom=1)
    _name(axes, sides)
    return figure


def _draw_contexts(suites: Mapping[str, Any]) -> Any:
    figure, axes = _axes("tokens a prompt", "acceptance length")
    ordered = dict(sorted(suites.items(), key=lambda item: item[1]["prompt_tokens"]))
    lengths = _lengths({name: suite["acceptance"] for name, suite in ordered.items()})
    axes.errorbar([suite["prompt_tokens"] for suite in ordered.values()], *lengths, fmt="o-", capsize=3)
    axes.set_ylim(bottom=1)
    return figure


def _axes(x: str, y: str) -> tuple[Any, Any]:
    figure = figure_class()(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    return figure, axes


def _name(axes: Any, sides: Mapping[str, Any]) -> None:
    if len(sides) > 1:
        axes.legend()


def _lengths(suites: Mapping[str, Any]) -> tuple[list[float], list[list[float]]]:
    """Acceptance lengths, and how far their intervals reach below and above."""
    lengths = [suite["acceptance_length"] for suite in suites.values()]
    bounds = [suite["confidence_interval"] for suite in suites.values()]
    below = [length - bound["low"] for length, bound in zip(lengths, bounds, strict=True)]
    above = [bound["high"] - length for length, bound in zip(lengths, bounds, strict=True)]
    return lengths, [below, above]


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
