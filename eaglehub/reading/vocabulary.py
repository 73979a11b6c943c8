"""The draft vocabulary map: `d2t` (draft id to target id, as an offset) and `t2d` (which target ids it reaches)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eaglehub.plan.operations import Cast, OffsetsFromIds

if TYPE_CHECKING:
    from eaglehub.plan.plan import TensorStep
    from eaglehub.reading.case import Case

# Fewer equal neighbours than this say nothing about lm_head's rows.
_MIN_REPEATS = 4


def read_vocabulary_map(case: Case, vocab_size: int, draft_vocab_size: int) -> np.ndarray | None:
    """Check the map and put it in canonical form, in place: `d2t` int64 offsets iff the vocabulary is pruned, no `t2d`.

    Returns:
        The target id of each draft id [Vd], or None for a full vocabulary or a broken map.
    """
    mask_step = case.tensors.pop("t2d", None)
    map_step = case.tensors.get("d2t")
    mask = _mask(case, mask_step, vocab_size)
    if draft_vocab_size == vocab_size:
        case.tensors.pop("d2t", None)
        _check_full(case, map_step, mask)
        return None
    if map_step is None or map_step.source is None:
        case.journal.error(
            "EH401",
            f"d2t is missing although the draft vocabulary ({draft_vocab_size}) is below the target's ({vocab_size}): "
            "draft ids would be taken for target ids",
            where="d2t",
        )
        return None
    values = _map(case, map_step, draft_vocab_size)
    if values is None:
        return None
    absolute = _is_absolute(case, values, mask, vocab_size)
    if absolute is None:
        return None
    step = map_step if map_step.dtype == "I64" else map_step.then(Cast("I64"))
    case.tensors["d2t"] = step.then(OffsetsFromIds()) if absolute else step
    ids = values if absolute else values + np.arange(len(values))
    _check_ids(case, ids, absolute, mask, vocab_size)
    return ids


def check_pruned_head(case: Case, ids: np.ndarray, step: TensorStep) -> None:
    """TorchSpec's pruning indexes lm_head with offsets instead of ids, which repeats a row wherever the offset repeats.

    Looks at the first block of rows only.
    """
    if step.source is None:
        return
    rows = next(iter(case.checkpoint.chunks(step.source)))
    offsets = (ids - np.arange(len(ids)))[: len(rows)]
    repeats = np.flatnonzero(offsets[1:] == offsets[:-1])
    if len(repeats) >= _MIN_REPEATS and bool(np.all(rows[repeats] == rows[repeats + 1])):
        case.journal.error(
            "EH407",
            f"lm_head.weight repeats a row at each of {len(repeats)} places where d2t repeats an offset: it was pruned "
            "with offsets in place of target ids, and the true rows are gone",
            where=step.source,
            fix="export again from the unpruned drafter",
        )


def _mask(case: Case, step: TensorStep | None, vocab_size: int) -> np.ndarray | None:
    if step is None or step.source is None:
        return None
    if step.shape != (vocab_size,):
        case.journal.error("EH405", f"t2d has shape {list(step.shape)}, not [{vocab_size}]", where=step.source)
        return None
    return case.checkpoint.read(step.source).astype(np.bool_)


def _map(case: Case, step: TensorStep, draft_vocab_size: int) -> np.ndarray | None:
    source = str(step.source)
    if step.shape != (draft_vocab_size,):
        case.journal.error(
            "EH408", f"d2t has shape {list(step.shape)}, but lm_head has {draft_vocab_size} rows", where=source
        )
        return None
    values = case.checkpoint.read(source)
    whole = values.astype(np.int64)
    if not np.array_equal(whole.astype(np.float64), values.astype(np.float64)):
        case.journal.error("EH408", "d2t holds values that are not whole numbers", where=source)
        return None
    return whole


def _check_full(case: Case, step: TensorStep | None, mask: np.ndarray | None) -> None:
    if step is not None and step.source is not None:
        if bool(np.any(case.checkpoint.read(step.source))):
            case.journal.error(
                "EH402", "d2t is not all zero although the draft vocabulary is the target's own", where=step.source
            )
        else:
            case.journal.note("EH409", "d2t dropped: vLLM refuses one on a full draft vocabulary", where=step.source)
    if mask is not None and not mask.all():
        case.journal.error(
            "EH405", "t2d leaves out target ids although the draft vocabulary is the target's own", where="t2d"
        )


def _is_absolute(case: Case, values: np.ndarray, mask: np.ndarray | None, vocab_size: int) -> bool | None:
    """Whether `d2t` holds target ids instead of offsets; None when that cannot be told or neither makes sense.

    An ascending map's ids are strictly increasing, its offsets only non-decreasing, and in any real map some repeat.
    """
    if not values.any():
        case.journal.error(
            "EH404",
            "d2t is all zero: an unset buffer, which maps the draft vocabulary to the first target ids",
            where="d2t",
        )
        return None
    steps = np.diff(values)
    if bool(np.any(values < 0)) or not bool(np.all(steps > 0)):
        return False
    sums = values + np.arange(len(values))
    if mask is not None:
        reached = np.flatnonzero(mask)
        if np.array_equal(reached, np.sort(sums)):
            return False
        return np.array_equal(reached, np.sort(values))
    fits_as_ids, fits_as_offsets = values[-1] < vocab_size, sums[-1] < vocab_size
    if fits_as_ids and fits_as_offsets:
        case.journal.error("EH406", "d2t may hold offsets or target ids, and there is no t2d to tell", where="d2t")
        return None
    return bool(fits_as_ids)


def _check_ids(case: Case, ids: np.ndarray, absolute: bool, mask: np.ndarray | None, vocab_size: int) -> None:
    if absolute:
        why = "d2t holds target ids; vLLM adds draft ids to it, so offsets are written"
        case.journal.note("EH406", why, where="d2t")
        case.journal.resolve("d2t convention", "target ids", "tensors", why)
    outside = np.flatnonzero((ids < 0) | (ids >= vocab_size))
    if len(outside):
        first = int(outside[0])
        case.journal.error(
            "EH402",
            f"d2t maps draft id {first} to target id {int(ids[first])}, outside the vocabulary of {vocab_size} "
            f"({len(outside)} such)",
            where="d2t",
        )
        return
    unique = len(np.unique(ids))
    if unique != len(ids):
        case.journal.error("EH403", f"d2t maps {len(ids)} draft ids to only {unique} target ids", where="d2t")
    if mask is not None and not np.array_equal(np.flatnonzero(mask), np.unique(ids)):
        case.journal.error(
            "EH405",
            f"t2d contradicts d2t: it marks {int(mask.sum())} target ids, d2t reaches {unique}, not the same ones",
            "t2d",
        )
