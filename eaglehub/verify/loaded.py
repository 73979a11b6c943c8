"""Whether the engine holds what the file has: every tensor and every flag of the drafter's module."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from eaglehub.drafter.shared import EMBEDDING, HEAD
from eaglehub.report.verdict import Verdict
from eaglehub.verify.checks import CheckResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.target import Target
    from eaglehub.scoring.candidate import Candidate
    from eaglehub.verify.checks import Check

EQUAL, EXPLAINED, NOT_COMPARED, FAILED = "equal", "explained", "not_compared", "failed"
_DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
# What vLLM renames or drops without harm.
_RENAMED = ("midlayer.", "layers.0.")
_UNUSED = {"t2d": "says again what d2t says"}
# What vLLM makes of `kv_b_proj`, so that latent attention needs no more than its cache holds.
_DERIVED = (".W_UK", ".W_UK_T", ".W_UV")
_SHOWN = 4


def judge_weights(check: Check, checkpoint: Checkpoint, held: Mapping[str, Any] | None, dtype: str) -> CheckResult:
    """Judge `loaded.weights`.

    Args:
        check: that one.
        checkpoint: the drafter's file.
        held: what the engine's module holds, see `inside.Inside.describe`.
        dtype: the engine's, to which it casts what it loads.
    """
    if held is None:
        return CheckResult(check, Verdict.SKIPPED, "this vLLM keeps its drafter where eaglehub does not find it")
    if "quantization_config" in checkpoint.config:
        return CheckResult(check, Verdict.SKIPPED, "an engine stores quantised weights in its own way")
    found = _from_file(checkpoint, held["tensors"], dtype) | _beyond_file(checkpoint, held["tensors"])
    outcome: dict[str, dict[str, str]] = {EQUAL: {}, EXPLAINED: {}, NOT_COMPARED: {}, FAILED: {}}
    for name, (kind, why) in sorted(found.items()):
        outcome[kind][name] = why
    return CheckResult(
        check,
        Verdict.FAIL if outcome[FAILED] else Verdict.PASS,
        _summary(outcome),
        f"every tensor as in the file, in {dtype}, or explained",
        {"num_equal": len(outcome[EQUAL]), **{kind: outcome[kind] for kind in (EXPLAINED, NOT_COMPARED, FAILED)}},
    )


def judge_flags(
    check: Check, candidate: Candidate | str, target: Target, held: Mapping[str, Any] | None
) -> CheckResult:
    """Judge `loaded.flags`; `candidate` is the drafter as read, or why it cannot be."""
    if held is None or isinstance(candidate, str):
        reason = candidate if isinstance(candidate, str) else "this vLLM keeps its drafter where it is not found"
        return CheckResult(check, Verdict.SKIPPED, reason)
    drafter, flags = candidate.drafter, held["flags"]
    wanted = {name: getattr(drafter, name) for name in flags if name != "aux_layer_ids"}
    if drafter.num_aux_hidden_states:
        wanted["aux_layer_ids"] = list(target.layer_ids_for(candidate.drafter))
    told = {name: value for name, value in wanted.items() if flags[name] is not None}
    wrong = [name for name, value in told.items() if not _same(value, flags[name])]
    said = ", ".join(f"{name} is {_shown(told[name])} in the file and {_shown(flags[name])} in vLLM" for name in wrong)
    return CheckResult(
        check,
        Verdict.FAIL if wrong else Verdict.PASS,
        said or f"{len(told)} flags as in the file",
        "the module's flags are the file's",
        {"file": wanted, "engine": dict(flags), "wrong": wrong},
    )


def _from_file(checkpoint: Checkpoint, held: Mapping[str, Any], dtype: str) -> dict[str, tuple[str, str]]:
    return {name: _compared(checkpoint, name, held.get(_engine_name(name)), dtype) for name in checkpoint.tensors}


def _engine_name(name: str) -> str:
    return name.replace(*_RENAMED, 1)


def _compared(checkpoint: Checkpoint, name: str, held: Mapping[str, Any] | None, dtype: str) -> tuple[str, str]:
    if name in _UNUSED:
        return EXPLAINED, _UNUSED[name]
    if held is None:
        return FAILED, "vLLM ignored it"
    if held["shared"]:
        return EXPLAINED, "vLLM shares the target's, which it found equal"
    if held["shape"] is None:
        return NOT_COMPARED, "this vLLM packs it"
    if held["shape"] != list(checkpoint.tensors[name].shape):
        return NOT_COMPARED, f"the first worker holds a part of it, {held['shape']}"
    return (EQUAL, "") if held["sha256"] == _digest(checkpoint, name, dtype) else (FAILED, "differs from the file")


def _beyond_file(checkpoint: Checkpoint, held: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    loaded = {_engine_name(name) for name in checkpoint.tensors}
    return {name: _without_file(name, each, "d2t" in held) for name, each in held.items() if name not in loaded}


def _without_file(name: str, held: Mapping[str, Any], pruned: bool) -> tuple[str, str]:
    if held["shared"] and (name == EMBEDDING or (name == HEAD and not pruned)):
        return EXPLAINED, "vLLM shares the target's"
    if name.endswith(_DERIVED):
        return EXPLAINED, "vLLM makes it of kv_b_proj"
    if name.endswith(".hidden_norm.weight") and not name.startswith("layers.0."):
        return EXPLAINED, "only the first layer has a use for it"
    return FAILED, "never set: the file has none"


def _digest(checkpoint: Checkpoint, name: str, dtype: str) -> str:
    """As the worker's: of the values that the engine's dtype makes of the file's, as float32 or int64."""
    hashed = hashlib.sha256()
    for chunk in checkpoint.chunks(name):
        whole = chunk.dtype.kind in "iu"
        values = chunk.astype(np.int64) if whole else chunk.astype(_DTYPES[dtype]).astype(np.float32)
        hashed.update(np.ascontiguousarray(values + 0).data)
    return hashed.hexdigest()


def _summary(outcome: Mapping[str, Mapping[str, str]]) -> str:
    failed = [f"{name}: {why}" for name, why in outcome[FAILED].items()]
    if failed:
        more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        return "; ".join(failed[:_SHOWN]) + more
    compared = f"{len(outcome[EQUAL])} tensors as in the file"
    explained = f", {len(outcome[EXPLAINED])} explained" if outcome[EXPLAINED] else ""
    return compared + explained + (f", {len(outcome[NOT_COMPARED])} not compared" if outcome[NOT_COMPARED] else "")


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-6)
    return bool(one == other)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
