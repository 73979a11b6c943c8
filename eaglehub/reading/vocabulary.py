"""The draft vocabulary map: `d2t` (draft id to target id, as an offset) and `t2d` (which target ids it reaches)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eaglehub.plan.operations import Cast, OffsetsFromIds

if TYPE_CHECKING:
    from eaglehub.plan.plan import TensorStep
    from eaglehub.reading.case import Case

_INTEGERS = ("I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8")
_NO_NUMBERS = ("BOOL", "C64")


def read_vocabulary_map(case: Case, vocab_size: int, draft_vocab_size: int) -> None:
    """Check the map and put it in canonical form, in place: `d2t` int64 offsets iff the vocabulary is pruned, no `t2d`.

    Where the case allows no values, only shapes and types are checked.
    """
    mask = _shaped(case, case.tensors.pop("t2d", None), vocab_size, "EH405")
    if mask:
        case.companions["t2d"] = mask
    step = case.tensors.get("d2t")
    if draft_vocab_size == vocab_size:
        if step:
            case.companions["d2t"] = case.tensors.pop("d2t")
        _read_full(case, step, mask)
    elif step is None or step.source is None:
        case.journal.error(
            "EH401",
            f"d2t is missing although the draft vocabulary ({draft_vocab_size}) is below the target's ({vocab_size}): "
            "draft ids would be taken for target ids",
            where="d2t",
        )
    elif _shaped(case, step, draft_vocab_size, "EH408"):
        _read_pruned(case, step, mask, vocab_size)


def _shaped(case: Case, step: TensorStep | None, length: int, code: str) -> TensorStep | None:
    """The step when it is a vector of that length; another shape is an error."""
    if step is None or step.source is None:
        return None
    if step.shape != (length,):
        case.journal.error(
            code, f"{step.source} has shape {list(step.shape)}, but {length} ids need [{length}]", where=step.source
        )
        return None
    return step


def _read_full(case: Case, step: TensorStep | None, mask: TensorStep | None) -> None:
    if step is not None and step.source is not None:
        if case.values and bool(case.checkpoint.read(step.source).any()):
            case.journal.error(
                "EH402", "d2t is not all zero although the draft vocabulary is the target's own", where=step.source
            )
        else:
            case.journal.note(
                "EH409", "d2t has no use on a full draft vocabulary, and vLLM refuses one", where=step.source
            )
    if mask is not None and case.values and not bool(case.checkpoint.read(str(mask.source)).all()):
        case.journal.error(
            "EH405", "t2d leaves out target ids although the draft vocabulary is the target's own", where="t2d"
        )


def _read_pruned(case: Case, step: TensorStep, mask: TensorStep | None, vocab_size: int) -> None:
    if step.dtype in _NO_NUMBERS:
        case.journal.error("EH408", f"d2t is stored as {step.dtype}, which is no number", where=str(step.source))
        return
    if step.dtype not in _INTEGERS:
        case.journal.note("EH410", f"d2t is stored as {step.dtype}; ids are integers", where=str(step.source))
    if step.dtype != "I64":
        case.tensors["d2t"] = step.then(Cast("I64"))
    if not case.values or prod(step.shape) == 0:
        return
    # Headers are read without numpy; values are not.
    from eaglehub.reading.draft_ids import check_draft_ids

    if check_draft_ids(case, step, mask, vocab_size):
        case.tensors["d2t"] = case.tensors["d2t"].then(OffsetsFromIds())
