"""Charts of an evaluation, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.report.figures import figure_class
from eaglehub.scoring.drift import MEASURES

if TYPE_CHECKING:
    from pathlib import Path

    from eaglehub.evaluate.report import EvaluateReport


def draw(report: EvaluateReport, folder: Path) -> None:
    """Write `acceptance.png` and `drift.png` into the folder, which is made where there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    _acceptance(report).savefig(folder / "acceptance.png", metadata={"Software": None})
    _drift(report).savefig(folder / "drift.png", metadata={"Software": None})


def _acceptance(report: EvaluateReport) -> Any:
    figure = figure_class()(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for side in report.sides():
        walks = [score.walk for score in side.scores.values()]
        lengths = [walk.acceptance_length for walk in walks]
        bounds = [walk.confidence_interval() for walk in walks]
        below = [length - low for length, (low, _) in zip(lengths, bounds, strict=True)]
        above = [high - length for length, (_, high) in zip(lengths, bounds, strict=True)]
        label = side.candidate.checkpoint.name
        axes.errorbar(list(side.scores), lengths, [below, above], fmt="o", capsize=3, label=label)
    axes.set_ylabel("acceptance length")
    axes.legend()
    return figure


def _drift(report: EvaluateReport) -> Any:
    """Of the first suite."""
    figure = figure_class()(figsize=(9, 6), layout="constrained")
    for axes, name in zip(figure.subplots(2, 2).flat, MEASURES, strict=True):
        for side in report.sides():
            values = next(iter(side.scores.values())).drift[name]
            axes.plot(range(1, len(values) + 1), values, marker=".", label=side.candidate.checkpoint.name)
        axes.set_title(name.replace("_", " "))
        axes.set_xlabel("draft step")
        axes.legend()
    return figure
