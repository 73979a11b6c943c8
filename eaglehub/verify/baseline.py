"""An earlier report as a yardstick: it counts only for the same prompts, settings and target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import read_json_object
from eaglehub.errors import UnusableInput, UsageProblem
from eaglehub.prompts import digest
from eaglehub.verify.metrics import Acceptance
from eaglehub.verify.report import VerifyReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from eaglehub.prompts import Conversation


@dataclass(frozen=True, slots=True)
class Baseline:
    """What an earlier report says.

    Attributes:
        drafter: see `identity.describe_drafter`.
        acceptance: on the prompts as they are; None where only suites were measured.
        robust: by suite.
    """

    drafter: Mapping[str, Any]
    acceptance: Acceptance | None
    robust: Mapping[str, Acceptance]


def read_baseline(
    path: Path, prompts: Sequence[Conversation], max_tokens: int, num_speculative_tokens: int
) -> Baseline:
    """What an earlier report says.

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
        robust = {each["suite"]: read_acceptance(each["acceptance"]) for each in report.get("robust", ())}
        acceptance = report["acceptance"] and read_acceptance(report["acceptance"])
        baseline = Baseline(report["drafter"], acceptance, robust)
    except (KeyError, TypeError, ValueError) as error:
        raise UnusableInput("holds no measured acceptance", where=path.name) from error
    if not acceptance and not robust:
        raise UnusableInput("holds no measured acceptance", where=path.name)
    differing = [name for name, (theirs, ours) in wanted.items() if theirs != ours]
    if differing:
        what = f"was measured with other {' and '.join(differing)}"
        raise UsageProblem(what, where=f"--baseline {path.name}", fix="measure both with the same")
    return baseline


def read_acceptance(fields: dict[str, Any]) -> Acceptance:
    """The acceptance that `Acceptance.to_json` wrote."""
    drafts = int(fields["num_drafts"])
    return Acceptance(
        drafts,
        int(fields["num_draft_tokens"]),
        tuple(round(rate * drafts) for rate in fields["per_position_acceptance_rates"]),
        tuple(map(_counts, fields["per_prompt"])),
    )


def _counts(prompt: dict[str, Any] | None) -> tuple[int, int] | None:
    return (int(prompt["num_drafts"]), int(prompt["num_accepted_tokens"])) if prompt else None
