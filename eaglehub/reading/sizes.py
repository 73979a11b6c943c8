"""A drafter's sizes: solved from the tensors' shapes, with the config for what shapes cannot tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eaglehub.drafter.drafter import MLA_KEYS

if TYPE_CHECKING:
    from eaglehub.drafter.target import Target
    from eaglehub.reading.case import Case

_FIRST = "layers.0.self_attn"


def solve_sizes(case: Case, ids_count: int | None) -> dict[str, Any] | None:
    """The size fields of `Drafter`.

    Args:
        case: its journal takes contradictions.
        ids_count: how many aux layer ids are declared or given, None if none are.

    Returns:
        None when a size cannot be told; the journal says which.
    """
    shapes = {name: step.shape for name, step in case.tensors.items()}
    errors_before = case.journal.errors
    missing = [name for name in ("norm.weight", "layers.0.mlp.gate_proj.weight") if len(shapes.get(name, ())) == 0]
    for name in missing:
        case.journal.error("EH302", f"{name} is missing, and without it the drafter's sizes are unknown", where=name)
    if missing:
        return None
    sizes = {
        "architecture": _architecture(shapes),
        "num_hidden_layers": _layers(case, shapes),
        "hidden_size": _agree(case, "hidden_size", shapes["norm.weight"][0], "norm.weight"),
        "intermediate_size": _agree(
            case, "intermediate_size", shapes["layers.0.mlp.gate_proj.weight"][0], "mlp.gate_proj.weight"
        ),
        "attention_bias": f"{_FIRST}.q_proj.bias" in shapes or f"{_FIRST}.q_a_proj.bias" in shapes,
        "mlp_bias": "layers.0.mlp.gate_proj.bias" in shapes,
    }
    sizes |= _vocabularies(case, shapes)
    sizes |= _aux(case, shapes, int(str(sizes["hidden_size"])), ids_count)
    sizes |= _mla(case) if sizes["architecture"] == "mla" else _heads(case, shapes)
    return None if case.journal.errors > errors_before else sizes


def _architecture(shapes: Mapping[str, Any]) -> str:
    if f"{_FIRST}.kv_a_proj_with_mqa.weight" in shapes:
        return "mla"
    return "qwen3" if f"{_FIRST}.q_norm.weight" in shapes else "llama"


def _layers(case: Case, shapes: Mapping[str, Any]) -> int:
    found = 1 + max(int(hit.group(1)) for name in shapes if (hit := re.match(r"layers\.(\d+)\.", name)))
    declared = case.typed("num_hidden_layers", int)
    if declared not in (None, found):
        reason = f"the file holds {found} draft layer{'s' * (found > 1)}, config.json said {declared}"
        case.journal.reasons["num_hidden_layers"] = reason
        case.journal.note("EH202", reason, where="config.json: num_hidden_layers")
    return found


def _agree(case: Case, key: str, found: int, tensor: str) -> int:
    """A size that both the config and a tensor give; a contradiction is an error: nothing tells which is right."""
    declared = case.typed(key, int)
    if declared not in (None, found):
        case.journal.error("EH202", f"{key} is {declared}, but {tensor} has {found} rows", where=f"config.json: {key}")
    case.journal.reasons.setdefault(key, f"from {tensor}")
    return found


def _vocabularies(case: Case, shapes: Mapping[str, Any]) -> dict[str, Any]:
    rows = {
        name: shapes[name][0] for name in ("t2d", "embed_tokens.weight", "lm_head.weight", "d2t") if shapes.get(name)
    }
    vocab = _vocab_size(case, rows)
    declared = case.typed("draft_vocab_size", int)
    draft = rows.get("lm_head.weight") or rows.get("d2t") or declared or vocab
    if declared not in (None, draft):
        tensor = "lm_head.weight" if "lm_head.weight" in rows else "d2t"
        reason = f"{tensor} has {draft} rows, config.json said {declared}"
        case.journal.reasons["draft_vocab_size"] = reason
        case.journal.warn("EH202", reason, where="config.json: draft_vocab_size")
    if "lm_head.weight" in rows and "d2t" in rows and rows["d2t"] != rows["lm_head.weight"]:
        case.journal.error(
            "EH408", f"lm_head.weight has {draft} rows, d2t maps {rows['d2t']} draft ids", "lm_head.weight"
        )
    if vocab and draft and draft > vocab:
        case.journal.error(
            "EH202", f"draft_vocab_size {draft} is larger than the target's vocab_size {vocab}", "lm_head.weight"
        )
    return {
        "vocab_size": vocab,
        "draft_vocab_size": draft,
        "embedding": "embed_tokens.weight" in shapes,
        "head": "lm_head.weight" in shapes or draft != vocab,
    }


def _vocab_size(case: Case, rows: Mapping[str, int]) -> int:
    declared = case.typed("vocab_size", int)
    tensor = next((name for name in ("t2d", "embed_tokens.weight") if name in rows), "")
    vocab = rows.get(tensor) or declared or (case.target.vocab_size if case.target else None)
    if vocab is None:
        case.journal.error(
            "EH201", "vocab_size is missing and no tensor shows it", "config.json: vocab_size", "pass --target"
        )
        return 0
    if tensor and declared not in (None, vocab):
        reason = f"{tensor} has {vocab} rows, config.json said {declared}"
        case.journal.reasons["vocab_size"] = reason
        case.journal.warn("EH202", reason, where="config.json: vocab_size")
    if case.target and vocab != case.target.vocab_size:
        case.journal.error(
            "EH602",
            f"the drafter is for a vocabulary of {vocab}, the target {case.target.name} has {case.target.vocab_size}",
            where="config.json: vocab_size",
        )
    return vocab


def _aux(case: Case, shapes: Mapping[str, Any], hidden: int, ids_count: int | None) -> dict[str, Any]:
    """How many aux states of which width `fc` reads."""
    declared = case.typed("target_hidden_size", int)
    fc = shapes.get("fc.weight")
    eagle_config = case.config.get("eagle_config")
    uses_aux = not (isinstance(eagle_config, Mapping) and eagle_config.get("use_aux_hidden_state") is False)
    if fc is None or len(fc) != 2:
        if uses_aux:
            case.journal.error(
                "EH302",
                "fc.weight is missing: nothing combines the target's states; vLLM would serve it with a random one",
                where="fc.weight",
            )
        return {"target_hidden_size": declared or hidden, "num_aux_hidden_states": 0}
    width = _target_width(declared, shapes, fc[1], hidden, ids_count, case.target)
    if fc[1] % width:
        case.journal.error(
            "EH303",
            f"fc.weight has {fc[1]} columns, not a multiple of the target's hidden size {width}",
            where="fc.weight",
        )
    if declared not in (None, width) or (case.target and case.target.hidden_size != width):
        said = (
            f"target {case.target.name} has {case.target.hidden_size}"
            if case.target
            else f"config.json says {declared}"
        )
        case.journal.error("EH601", f"fc.weight reads hidden states of width {width}, {said}", where="fc.weight")
    return {"target_hidden_size": width, "num_aux_hidden_states": fc[1] // width}


def _target_width(
    declared: int | None,
    shapes: Mapping[str, Any],
    columns: int,
    hidden: int,
    ids_count: int | None,
    target: Target | None,
) -> int:
    """The target's hidden size by the best witness: config, fc_norm, target, drafter, number of ids."""
    norm: tuple[int, ...] | None = shapes.get("fc_norm.0.weight")
    if declared:
        return declared
    if norm:
        return norm[0]
    if target and columns % target.hidden_size == 0:
        return target.hidden_size
    if columns % hidden == 0:
        return hidden
    return columns // ids_count if ids_count and columns % ids_count == 0 else columns // 3


def _heads(case: Case, shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Attention heads of a llama or qwen3 drafter."""
    heads = case.typed("num_attention_heads", int)
    rows = {side: shapes.get(f"{_FIRST}.{side}_proj.weight", (0,))[0] for side in "qkv"}
    if not heads or not rows["q"] or not rows["k"]:
        lacking = "config.json has no num_attention_heads" if not heads else "q_proj or k_proj is missing in layer 0"
        case.journal.error("EH302" if heads else "EH201", lacking, where=f"{_FIRST}.q_proj.weight")
        return {}
    declared = case.typed("head_dim", int)
    norm = shapes.get(f"{_FIRST}.q_norm.weight")
    head_dim = declared or (norm[0] if norm else rows["q"] // heads)
    if heads * head_dim != rows["q"] or rows["k"] % head_dim:
        case.journal.error(
            "EH202",
            f"{heads} heads of head_dim {head_dim} do not fit q_proj with {rows['q']} and k_proj with {rows['k']} rows",
            where="config.json: head_dim",
        )
        return {}
    kv_heads = rows["k"] // head_dim
    if case.typed("num_key_value_heads", int) not in (None, kv_heads):
        reason = f"k_proj has {kv_heads} heads of {head_dim}, config.json said {case.config['num_key_value_heads']}"
        case.journal.reasons["num_key_value_heads"] = reason
        case.journal.warn("EH202", reason, where="config.json: num_key_value_heads")
    case.journal.reasons.setdefault("head_dim", "from q_proj's rows")
    case.journal.reasons.setdefault("num_key_value_heads", "from k_proj's rows")
    return {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim, "mla": {}}


def _mla(case: Case) -> dict[str, Any]:
    """Attention dimensions of an MLA drafter; shapes alone cannot part them, so the config must hold them."""
    heads = case.typed("num_attention_heads", int)
    dims = {key: case.typed(key, int) for key in MLA_KEYS}
    for key, value in {"num_attention_heads": heads, **dims}.items():
        if value is None and key != "q_lora_rank":
            case.journal.error("EH201", f"an MLA drafter's config must have {key}", where=f"config.json: {key}")
    case.journal.reasons["head_dim"] = "an MLA drafter's heads have dimensions of their own"
    kv_heads = case.typed("num_key_value_heads", int)
    return {"num_attention_heads": heads, "num_key_value_heads": kv_heads or heads, "head_dim": None, "mla": dims}
