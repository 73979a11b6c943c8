"""The four flags of EAGLE 3.1: what the config says, what the tensors say, and what neither does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.errors import UsageProblem
from eaglehub.formats.config_paths import MISSING, lookup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.formats.spec import Flag
    from eaglehub.reading.case import Case

# Flags whose truth shows in the tensors, the tensor that shows it, and the code of a contradiction.
_WITNESS = {"fc_norm": ("fc_norm.0.weight", "EH706"), "norm_before_fc": ("input_norm.weight", "EH710")}


def read_flags(case: Case) -> dict[str, bool]:
    """`fc_norm`, `norm_before_fc`, `norm_output` and `norm_before_residual` in vLLM's meaning.

    Raises:
        UsageProblem: an answer contradicts what the source says for certain.
    """
    declared = {name: _declared(case, name, flag) for name, flag in case.spec.flags.items()}
    flags = {name: _witnessed(case, name, *witness, declared[name]) for name, witness in _WITNESS.items()}
    flags["norm_output"] = _feedback(case, declared, flags["fc_norm"])
    flags["norm_before_residual"] = _residual(case, declared["norm_before_residual"])
    if case.spec.flags["norm_output"].ask == "true" and declared["norm_output"] is False:
        _warn_untrained_norm(case)
    return flags


def _declared(case: Case, name: str, flag: Flag) -> bool | None:
    """The flag where its keys agree; None when none is there."""
    found = {key: value for key in flag.keys if (value := lookup(case.config, key)) not in (MISSING, None)}
    for key, value in found.items():
        if not isinstance(value, bool):
            case.journal.error("EH201", f"{name} is {value!r}, not true or false", where=f"config.json: {key}")
    values = [value for value in found.values() if isinstance(value, bool)]
    if len(set(values)) > 1:
        case.journal.error("EH706", f"{' and '.join(found)} contradict each other", where=f"config.json: {name}")
    return values[0] if values else None


def _witnessed(case: Case, name: str, tensor: str, code: str, declared: bool | None) -> bool:
    present = tensor in case.tensors
    if declared is None and present:
        case.journal.note(code, f"{tensor} is there although the config does not mention {name}", where=name)
        case.journal.reasons[name] = f"{tensor} is in the file"
    elif declared is not None and declared != present:
        state = "missing" if declared else "in the file"
        case.journal.error(code, f"config says {name}: {str(declared).lower()}, but {tensor} is {state}", where=tensor)
    return present


def _feedback(case: Case, declared: Mapping[str, bool | None], fc_norm: bool) -> bool:
    """Whether the post-norm state is fed back; nothing but the config can tell, and not all configs can."""
    flag = case.spec.flags["norm_output"]
    value = declared["norm_output"]
    lost = fc_norm and value is None and declared["fc_norm"] is None
    unsaid = (flag.ask == "true" and value) or (flag.ask == "missing" and value is None)
    if unsaid or lost:
        why = (
            flag.why
            if unsaid
            else "the config lost its EAGLE 3.1 flags: fc_norm shows in the tensors, norm_output cannot"
        )
        if case.answers.feedback is None:
            case.journal.error(
                "EH701",
                f"norm_output is ambiguous: {why}",
                where="config.json: norm_output",
                fix="pass --feedback pre-norm or --feedback post-norm",
            )
            return bool(value)
        case.journal.resolve("feedback", case.answers.feedback, "option", why)
        case.journal.reasons["norm_output"] = f"--feedback {case.answers.feedback}"
        return case.answers.feedback == "post-norm"
    known = "post-norm" if value else "pre-norm"
    if case.answers.feedback not in (None, known):
        raise UsageProblem(
            f"this {case.spec.title} drafter was trained with {known} feedback; flipping the flag destroys it",
            where="--feedback",
            fix="eaglehub upgrade turns an EAGLE-3 drafter into a 3.1 one",
        )
    return bool(value)


def _residual(case: Case, declared: bool | None) -> bool:
    flag = case.spec.flags["norm_before_residual"]
    said = case.answers.norm_before_residual
    if declared is None and flag.ask == "missing":
        if said is None:
            case.journal.error(
                "EH702",
                f"norm_before_residual is missing: {flag.why}",
                where="config.json: norm_before_residual",
                fix="pass --norm-before-residual or --no-norm-before-residual",
            )
            return False
        case.journal.resolve("norm_before_residual", said, "option", flag.why)
        case.journal.reasons["norm_before_residual"] = "said on the command line"
        return said
    if said is not None and said != bool(declared):
        raise UsageProblem(
            f"this {case.spec.title} drafter was trained with norm_before_residual: {str(bool(declared)).lower()}",
            where="--norm-before-residual",
            fix="leave the option out",
        )
    return bool(declared)


def _warn_untrained_norm(case: Case) -> None:
    """SpecForge before PR 879 left the norm out altogether with norm_output: false; then its weights stayed ones."""
    step = case.tensors.get("norm.weight")
    if case.values and step and step.source and bool((case.checkpoint.read(step.source) == 1).all()):
        case.journal.warn(
            "EH701",
            "norm.weight is all ones and norm_output false: if SpecForge 0.2.0 or older trained it, lm_head read "
            "un-normed states; greedy drafts stay the same in vLLM, draft probabilities do not",
            where="norm.weight",
        )
