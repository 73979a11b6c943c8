"""Charts of a run: its loss, and acceptance on held-out prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.report.figures import figure_class

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def draw(metrics: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write `training.png` into the folder, which is made where there is none.

    Args:
        metrics: the lines of `metrics.jsonl`.
        folder: where to.
    """
    steps = [entry for entry in metrics if "loss" in entry]
    evaluations = [entry for entry in metrics if "acceptance_length" in entry]
    figure = figure_class()(figsize=(10, 4), layout="constrained")
    loss, acceptance = figure.subplots(1, 2)
    loss.plot([entry["step"] for entry in steps], [entry["loss"] for entry in steps])
    loss.set_ylabel("loss")
    lengths = [entry["acceptance_length"] for entry in evaluations]
    acceptance.plot([entry["step"] for entry in evaluations], lengths, marker=".")
    acceptance.set_ylabel("acceptance length, held-out prompts")
    for axes in (loss, acceptance):
        axes.set_xlabel("step")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "training.png", metadata={"Software": None})
