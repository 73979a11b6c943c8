"""Why a drafter drafts badly: how it differs from one that did not, and how else its file could be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.diff import diff_configs
from eaglehub.report.verdict import Verdict
from eaglehub.verify.checks import CheckResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eaglehub.verify.checks import Check

DECLARED, MUTED = "as declared", "its attention muted"
# A reading must beat the declared one by this and by its confidence interval.
_BETTER = 1.02
_SHOWN = 4
# Keys of no meaning to an engine.
_MUTE_KEYS = frozenset({"_name_or_path", "transformers_version", "_commit_hash", "torch_dtype", "dtype"})


@dataclass(frozen=True, slots=True)
class Measured:
    """One reading's figures.

    Attributes:
        name: what is read otherwise.
        probability: that of the target's own token, the mean over the first draft positions of all slots.
        acceptance_length: with a draft of that many tokens at every slot.
        ratio: the probability over that of the declared reading; `half_width` is that of its 95 % interval by prompt.
    """

    name: str
    probability: float
    acceptance_length: float
    ratio: float
    half_width: float

    def to_json(self) -> dict[str, Any]:
        """As the report has it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Differences:
    """How a drafter differs from another one; both as `identity.describe_drafter` has them.

    Attributes:
        other: what to call the other one.
        config: one line a key.
        tensors: names that differ in value or are only in one.
        count: of this drafter's tensors.
        binding: whether the very same weights ought to be read as the other one's are.
    """

    other: str
    config: tuple[str, ...]
    tensors: tuple[str, ...]
    count: int
    binding: bool

    @property
    def only_read_otherwise(self) -> bool:
        """The very same weights under another config, though that ought not to be."""
        return self.binding and bool(self.config) and not self.tensors

    def __str__(self) -> str:
        """What differs, in words; empty when nothing does."""
        many = len(self.tensors) > _SHOWN
        tensors = f"{len(self.tensors)} of {self.count} tensors" if many else ", ".join(self.tensors)
        parts = [*self.config[:_SHOWN], *([tensors] if tensors else [])]
        return f"differs from {self.other} in {'; '.join(parts)}" if parts else ""

    def to_json(self) -> dict[str, Any]:
        """As evidence."""
        return {"other": self.other, "config": list(self.config), "tensors": list(self.tensors)}


def differences(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], other: str, *, binding: bool = False
) -> Differences:
    """How the drafter `ours` differs from `theirs`, which is called `other`; see `Differences`."""
    diff = diff_configs(theirs["config"], ours["config"])
    lines = {
        **{key: f"{key} ({_text(before)}, now {_text(after)})" for key, (before, after) in diff.changed.items()},
        **{key: f"{key} ({_text(value)}, now absent)" for key, value in diff.removed.items()},
        **{key: f"{key} (absent, now {_text(value)})" for key, value in diff.added.items()},
    }
    before, after = (
        {tensor["name"]: (tensor["shape"], tensor["sha256"]) for tensor in each["tensors"]} for each in (theirs, ours)
    )
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    config = tuple(line for key, line in lines.items() if key not in _MUTE_KEYS)
    return Differences(other, config, tuple(names), len(after), binding)


def judge_cause(
    check: Check, measured: Sequence[Measured] | str, found: Sequence[Differences], missed: Sequence[str]
) -> CheckResult:
    """Judge `diagnosis.cause`.

    Args:
        check: that one.
        measured: the declared reading and the others, or why there are none.
        found: how the drafter differs from those that it is compared with.
        missed: the checks of its acceptance that failed.
    """
    readings = [] if isinstance(measured, str) else measured
    better, suspects = _better(readings), [difference for difference in found if str(difference)]
    symptoms = [] if better else _useless_attention(readings)
    wrong = bool(missed or better or symptoms or any(difference.only_read_otherwise for difference in suspects))
    evidence = {
        "readings": [reading.to_json() for reading in readings],
        "differences": [difference.to_json() for difference in found],
        "missed": list(missed),
    }
    threshold = "no other reading of the file is better, its attention is of use, and no threshold is missed"
    if wrong:
        symptoms = symptoms or [measured if isinstance(measured, str) else "no other reading is better"]
        return CheckResult(check, Verdict.FAIL, _summary(better, suspects, symptoms), threshold, evidence)
    if isinstance(measured, str):
        return CheckResult(check, Verdict.SKIPPED, measured)
    return CheckResult(
        check, Verdict.PASS, f"none of {len(readings) - 2} other readings is better", threshold, evidence
    )


def _summary(better: Sequence[str], suspects: Sequence[Differences], symptoms: Sequence[str]) -> str:
    causes = [*better, *map(str, suspects)]
    said = "; ".join(causes if better else [*causes, *symptoms])
    return said if causes else f"unexplained: {said}"


def _better(readings: Sequence[Measured]) -> list[str]:
    """The best of the readings that beat the declared one beyond their confidence interval."""
    others = [reading for reading in readings if reading.name != MUTED and reading.ratio >= _BETTER]
    better = [reading for reading in others if reading.ratio - reading.half_width > 1]
    if not better:
        return []
    best, declared = max(better, key=lambda reading: reading.probability), readings[0]
    return [
        f"with {best.name} it drafts better: probability of the target's token {best.probability:.3f} instead of "
        f"{declared.probability:.3f} (x {best.ratio:.2f} +-{best.half_width:.2f}), "
        f"acceptance length {best.acceptance_length:.3f} instead of {declared.acceptance_length:.3f}"
    ]


def _useless_attention(readings: Sequence[Measured]) -> list[str]:
    """The last token reaches an EAGLE-3 drafter through its attention alone, so a sound one cannot do without."""
    muted = next((reading for reading in readings if reading.name == MUTED), None)
    if muted is None or muted.ratio + muted.half_width < 1:
        return []
    return [
        "its attention is of no use: muted, the probability of the target's token is "
        f"{muted.probability:.3f} instead of {readings[0].probability:.3f}"
    ]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
