"""How numbers and names are put on pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.pages.page import Bar, Bars, Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def count(number: int, noun: str) -> str:
    """`1 check`, `2 checks`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def interval(bounds: Mapping[str, Any], digits: int = 3) -> str:
    """`1.482 to 1.742`."""
    return f"{bounds['low']:.{digits}f} to {bounds['high']:.{digits}f}"


def milliseconds(quantiles: Mapping[str, float]) -> str:
    """Median and 90th percentile of seconds, in ms."""
    return f"{_ms(quantiles['median'])} ({_ms(quantiles['p90'])})"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g}" if seconds < 1 else f"{1000 * seconds:.0f}"


def short(digest: str) -> str:
    """Enough of a SHA-256 to tell two apart by eye."""
    return digest[:12]


def length_bar(acceptance: Mapping[str, Any]) -> Bar:
    """An acceptance length with its interval."""
    length, bounds = acceptance["acceptance_length"], acceptance["confidence_interval"]
    return Bar(length, f"{length:.3f} ({interval(bounds)})", bounds["low"], bounds["high"])


def position_bars(sides: Sequence[tuple[str, Mapping[str, Any]]]) -> Bars:
    """Share of drafts whose token at each position was accepted, for one drafter or several."""
    rates = [acceptance["per_position_acceptance_rates"] for _, acceptance in sides]
    groups = [
        (str(position + 1), [_rate(each, position) for each in rates]) for position in range(max(map(len, rates)))
    ]
    return Bars("share of drafts accepted at the position", [name for name, _ in sides], groups, full=1.0)


def acceptance_sections(sides: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Section]:
    """Acceptances side by side, by position and in all."""
    lengths = [(name, [length_bar(acceptance)]) for name, acceptance in sides]
    return [
        Section("Acceptance by draft position", [position_bars(sides)]),
        Section("Acceptance length", [Bars("acceptance length (95 % interval)", [""], lengths)]),
    ]


def _rate(rates: Sequence[float], position: int) -> Bar | None:
    return Bar(rates[position], f"{rates[position]:.1%}") if position < len(rates) else None


def percent(ratio: float) -> str:
    """`100.1 %`."""
    return f"{ratio:.1%}"
