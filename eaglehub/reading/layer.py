"""What the config says of a draft layer besides its sizes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from eaglehub.drafter.tensors import FLOATS

if TYPE_CHECKING:
    from eaglehub.reading.case import Case

_MASK_TOKEN_KEYS = ("mask_token_id", "pard_token", "ptd_token_id")


def read_layer(case: Case) -> dict[str, Any]:
    """The fields of `Drafter` that neither sizes, flags, RoPE nor layer ids are."""
    return {
        "hidden_act": _silu(case),
        "rms_norm_eps": _eps(case),
        "max_position_embeddings": _positions(case),
        "parallel_drafting": _drafts_in_parallel(case),
        "mask_token_id": _mask_token(case),
        "dtype": _dtype(case),
    }


def _silu(case: Case) -> str:
    activation: str = case.config.get("hidden_act", "silu")
    if activation != "silu":
        case.journal.error(
            "EH204",
            f"hidden_act is {activation!r}; every engine's drafter class has silu only",
            "config.json: hidden_act",
        )
    return activation


def _eps(case: Case) -> float:
    """Transformers' default for llama where the file says nothing."""
    case.journal.reasons.setdefault("rms_norm_eps", "the default, written out")
    return float(case.config.get("rms_norm_eps", 1e-6))


def _positions(case: Case) -> int | None:
    target = case.target
    declared: int | None = case.config.get("max_position_embeddings")
    wanted = target.max_position_embeddings if target else None
    if wanted and (declared or 0) < wanted:
        case.journal.reasons["max_position_embeddings"] = (
            f"raised to {target.name if target else ''}'s: a drafter is served at the target's positions, and older "
            "engines size its RoPE cache by this"
        )
        return wanted
    return declared


def _drafts_in_parallel(case: Case) -> bool:
    """Whether it is a P-EAGLE drafter; one that lost its `mask_hidden` must not pass for a plain one."""
    present = "mask_hidden" in case.tensors
    architectures = case.checkpoint.config.get("architectures")
    declared = (
        any(key in case.config for key in _MASK_TOKEN_KEYS)
        or case.config.get("parallel_drafting") is True
        or case.checkpoint.config.get("speculators_model_type") == "peagle"
        or "peagle" in str(architectures).lower()
    )
    if declared and not present:
        case.journal.error(
            "EH302", "mask_hidden is missing, without which nothing can be drafted in parallel", "mask_hidden"
        )
    return present


def _mask_token(case: Case) -> int | None:
    if "mask_hidden" not in case.tensors:
        return None
    tokens = {key: case.config[key] for key in _MASK_TOKEN_KEYS if key in case.config}
    if len(set(tokens.values())) != 1:
        said = ", ".join(f"{key} {token}" for key, token in tokens.items()) or "none"
        case.journal.error(
            "EH201", f"a parallel drafter needs one mask token, the config names {said}", "config.json: mask_token_id"
        )
    return next(iter(tokens.values()), None)


def _dtype(case: Case) -> str:
    """The dtype of most weights."""
    sizes: dict[str, int] = {}
    for step in case.tensors.values():
        if step.dtype in FLOATS:
            sizes[step.dtype] = sizes.get(step.dtype, 0) + prod(step.shape)
    dtype = max(sizes, key=sizes.__getitem__, default="BF16")
    wanted = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}.get(str(case.target.dtype if case.target else ""))
    if wanted and wanted != dtype:
        case.journal.note(
            "EH604",
            f"weights are {dtype}, the target runs in {wanted}; engines cast",
            fix=f"--dtype {case.target.dtype if case.target else ''}",
        )
    return dtype
