"""An earlier report as a yardstick: it counts only for the same prompts, settings and target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import read_json_object
from eaglehub.errors import UnusableInput, UsageProblem
from eaglehub.prompts import digest
from eaglehub.verify.metrics import Acceptance
from eaglehub.verify.report import VerifyReport

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eaglehub.prompts import Conversation


def read_baseline(
    path: Path, prompts: Sequence[Conversation], max_tokens: int, num_speculative_tokens: int
) -> Acceptance:
    """The acceptance that an earlier report holds.

    Raises:
        UnusableInput: it is no verification report, or has no measurement.
        UsageProblem: it was measured with other prompts or settings, so that the numbers do not compare.
    """
    report = read_json_object(path)
    if report.get("kind") != VerifyReport.kind:
        raise UnusableInput("is not a report of eaglehub verify", where=path.name)
    try:
        wanted = {
            "prompts": (report["prompts"]["digest"], digest(prompts)),
            "--max-tokens": (report["prompts"]["max_tokens"], max_tokens),
            "--num-speculative-tokens": (report["config"]["num_speculative_tokens"], num_speculative_tokens),
        }
        acceptance = _acceptance(report["acceptance"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnusableInput("holds no measured acceptance", where=path.name) from error
    differing = [name for name, (theirs, ours) in wanted.items() if theirs != ours]
    if differing:
        what = f"was measured with other {' and '.join(differing)}"
        raise UsageProblem(what, where=f"--baseline {path.name}", fix="measure both with the same")
    return acceptance


def _acceptance(fields: dict[str, Any]) -> Acceptance:
    drafts = int(fields["num_drafts"])
    return Acceptance(
        drafts,
        int(fields["num_draft_tokens"]),
        tuple(round(rate * drafts) for rate in fields["per_position_acceptance_rates"]),
        tuple(map(_counts, fields["per_prompt"])),
    )


def _counts(prompt: dict[str, Any] | None) -> tuple[int, int] | None:
    return (int(prompt["num_drafts"]), int(prompt["num_accepted_tokens"])) if prompt else None
