"""The values of the vocabulary map: offsets or ids, in range, unique, and the same in both of its halves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eaglehub.plan.plan import TensorStep
    from eaglehub.reading.case import Case

# Fewer equal neighbours than this say nothing about lm_head's rows.
_MIN_REPEATS = 4


def check_draft_ids(case: Case, step: TensorStep, mask_step: TensorStep | None, vocab_size: int) -> bool:
    """Check `d2t` [Vd] against `t2d` [V], the vocabulary and lm_head's rows.

    Returns:
        Whether `d2t` holds target ids in place of offsets.
    """
    values = case.checkpoint.read(str(step.source))
    if values.dtype.kind not in "iu" and not _are_whole(values):
        case.journal.error("EH408", "d2t holds values that are not whole numbers", where=str(step.source))
        return False
    whole = values.astype(np.int64)
    mask = case.checkpoint.read(str(mask_step.source)).astype(np.bool_) if mask_step else None
    absolute = _is_absolute(case, whole, mask, vocab_size)
    if absolute is None:
        return False
    ids = whole if absolute else whole + np.arange(len(whole))
    _check_ids(case, ids, absolute, mask, vocab_size)
    if "lm_head.weight" in case.tensors and not case.checkpoint.headers_only:
        _check_pruned_head(case, ids, case.tensors["lm_head.weight"])
    return absolute


def _are_whole(values: np.ndarray) -> bool:
    """Whether floats are whole numbers that fit an integer."""
    numbers = values.astype(np.float64)
    return bool(np.all(np.isfinite(numbers) & (np.abs(numbers) < 2.0**53) & (np.trunc(numbers) == numbers)))


def _check_pruned_head(case: Case, ids: np.ndarray, step: TensorStep) -> None:
    """TorchSpec's pruning indexes lm_head with offsets instead of ids, which repeats a row wherever the offset repeats.

    Looks at the first block of rows only.
    """
    if step.source is None or len(step.shape) != 2:
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


def _is_absolute(case: Case, values: np.ndarray, mask: np.ndarray | None, vocab_size: int) -> bool | None:
    """Whether `d2t` holds target ids instead of offsets; None when that cannot be told.

    Ids are unique and in range; offsets give such ids once the draft id is added. `t2d`, if there is one, is the judge.
    """
    if not values.any():
        case.journal.error(
            "EH404",
            "d2t is all zero: an unset buffer, which maps the draft vocabulary to the first target ids",
            where="d2t",
        )
        return None
    sums = values + np.arange(len(values))
    if mask is not None:
        reached = np.flatnonzero(mask)
        return not np.array_equal(reached, np.sort(sums)) and np.array_equal(reached, np.sort(values))
    as_ids, as_offsets = _are_ids(values, vocab_size), _are_ids(sums, vocab_size)
    if as_ids and as_offsets:
        case.journal.error("EH406", "d2t may hold offsets or target ids, and there is no t2d to tell", where="d2t")
        return None
    return as_ids


def _are_ids(values: np.ndarray, vocab_size: int) -> bool:
    in_range = bool(np.all((values >= 0) & (values < vocab_size)))
    return in_range and len(np.unique(values)) == len(values)


def _check_ids(case: Case, ids: np.ndarray, absolute: bool, mask: np.ndarray | None, vocab_size: int) -> None:
    if absolute:
        why = "d2t holds target ids where engines, which add draft ids to it, want offsets"
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
