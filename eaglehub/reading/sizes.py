"""A drafter's sizes: solved from the tensors' shapes, with the config for what shapes cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.drafter.drafter import MLA_KEYS
from eaglehub.formats.config_paths import lookup
from eaglehub.reading.layer_ids import declared_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.reading.case import Case

_FIRST = "layers.0.self_attn"
# What implementations round vocabularies up to.
_PADDED_TO = (64, 128, 256)
# When the config contradicts the tensors, these are errors: nothing tells which of the two is right.
_FATAL = ("hidden_size", "intermediate_size")
# Producers copy these from the target and the drafter is right all the same.
_HARMLESS = ("num_hidden_layers",)


def solve_sizes(case: Case) -> dict[str, Any] | None:
    """The size fields of `Drafter`.

    Args:
        case: its tensors have the right number of axes; its journal takes contradictions.

    Returns:
        None when a size cannot be told; the journal says which.
    """
    shapes = {name: step.shape for name, step in case.tensors.items()}
    errors_before = case.journal.errors
    missing = [name for name in ("norm.weight", "layers.0.mlp.gate_proj.weight") if name not in shapes]
    for name in missing:
        case.journal.error("EH302", f"{name} is missing, and without it the drafter's sizes are unknown", where=name)
    if missing:
        return None
    hidden = _settle(case, "hidden_size", shapes["norm.weight"][0], "norm.weight")
    mlp = shapes["layers.0.mlp.gate_proj.weight"][0]
    layers = {name.split(".")[1] for name in shapes if name.startswith("layers.")}
    biased = any(f"{_FIRST}.{name}_proj.bias" in shapes for name in ("q", "q_a"))
    sizes = {
        "architecture": _architecture(shapes),
        "hidden_size": hidden,
        "num_hidden_layers": _settle(case, "num_hidden_layers", len(layers), "the layers in the file"),
        "intermediate_size": _settle(case, "intermediate_size", mlp, "mlp.gate_proj.weight"),
        "attention_bias": _settle(case, "attention_bias", biased, "the attention's tensors"),
        "mlp_bias": _settle(case, "mlp_bias", "layers.0.mlp.gate_proj.bias" in shapes, "the MLP's tensors"),
    }
    sizes |= _vocabularies(case, shapes)
    sizes |= _aux(case, shapes, hidden)
    sizes |= _mla(case) if sizes["architecture"] == "mla" else _heads(case, shapes)
    return None if case.journal.errors > errors_before else sizes


def _settle(case: Case, key: str, found: Any, witness: str) -> Any:
    """What the tensors say, with a finding where the config says something else."""
    declared = case.config.get(key)
    case.journal.reasons.setdefault(key, f"from {witness}")
    if declared not in (None, found):
        message = f"{key} is {found} by {witness}, config.json says {declared}"
        where = f"config.json: {key}"
        case.journal.reasons[key] = message
        if key in _FATAL:
            case.journal.error("EH202", message, where)
        elif key in _HARMLESS:
            case.journal.note("EH202", message, where)
        else:
            case.journal.warn("EH202", message, where)
    return found


def _architecture(shapes: Mapping[str, Any]) -> str:
    if f"{_FIRST}.kv_a_proj_with_mqa.weight" in shapes:
        return "mla"
    return "qwen3" if f"{_FIRST}.q_norm.weight" in shapes else "llama"


def _vocabularies(case: Case, shapes: Mapping[str, Any]) -> dict[str, Any]:
    rows = {name: shapes[name][0] for name in ("t2d", "embed_tokens.weight", "lm_head.weight", "d2t") if name in shapes}
    vocab = _vocab_size(case, rows)
    witness = next((name for name in ("lm_head.weight", "d2t") if name in rows), "")
    draft = rows[witness] if witness else case.config.get("draft_vocab_size", vocab)
    _settle(case, "draft_vocab_size", draft, witness or "the vocabulary")
    if rows.get("d2t", draft) != draft:
        case.journal.error(
            "EH408", f"lm_head.weight has {draft} rows, d2t maps {rows['d2t']} draft ids", "lm_head.weight"
        )
    if vocab and draft > vocab:
        case.journal.error(
            "EH202", f"draft_vocab_size {draft} is larger than the target's vocab_size {vocab}", "lm_head.weight"
        )
    head, embedding = "lm_head.weight" in rows, "embed_tokens.weight" in rows
    if case.config.get("tie_word_embeddings") and embedding and not head:
        case.journal.error(
            "EH302",
            "lm_head.weight is missing: it is tied to the drafter's own embedding, engines would take the target's",
            where="lm_head.weight",
        )
    return {
        "vocab_size": vocab,
        "draft_vocab_size": draft,
        "embedding": embedding,
        # A pruned vocabulary's head must be in the file.
        "head": head or draft != vocab,
    }


def _vocab_size(case: Case, rows: Mapping[str, int]) -> int:
    witness = next((name for name in ("t2d", "embed_tokens.weight") if name in rows), "")
    vocab: int | None = case.config.get("vocab_size")
    if witness:
        vocab = _settle(case, "vocab_size", rows[witness], witness)
    if vocab is None and case.target:
        vocab = case.target.vocab_size
    if vocab is None:
        case.journal.error(
            "EH201", "vocab_size is missing and no tensor shows it", "config.json: vocab_size", "pass --target"
        )
        return 0
    if case.target and vocab != case.target.vocab_size:
        case.journal.error(
            "EH602",
            f"the drafter is for a vocabulary of {vocab}, the target {case.target.name} has {case.target.vocab_size}"
            f"{_padding(vocab, case.target.vocab_size)}",
            where="config.json: vocab_size",
        )
    return vocab


def _padding(one: int, other: int) -> str:
    """Says so when two sizes differ by no more than the rows that fill a vocabulary up to a round number."""
    low, high = sorted((one, other))
    padded = any(high == -(-low // step) * step for step in _PADDED_TO)
    return " (one of them counts padding rows)" if padded else ""


def _aux(case: Case, shapes: Mapping[str, Any], hidden: int) -> dict[str, Any]:
    """How many aux states of which width `fc` reads."""
    fc = shapes.get("fc.weight")
    uses_aux = lookup(case.config, "eagle_config.use_aux_hidden_state") is not False
    if fc is None:
        if uses_aux:
            case.journal.error(
                "EH302",
                "fc.weight is missing: nothing combines the target's states; vLLM would serve it with a random one",
                where="fc.weight",
            )
        return {"target_hidden_size": case.config.get("target_hidden_size", hidden), "num_aux_hidden_states": 0}
    if not uses_aux:
        case.journal.error(
            "EH202", "use_aux_hidden_state is false, but fc.weight is in the file", "eagle_config.use_aux_hidden_state"
        )
    width = _target_width(case, shapes, fc[1], hidden)
    if fc[1] % width:
        case.journal.error(
            "EH303", f"fc.weight has {fc[1]} columns, no multiple of the target's hidden size {width}", "fc.weight"
        )
    if case.target and case.target.hidden_size != width:
        said = f"the target {case.target.name} has {case.target.hidden_size}"
        case.journal.error("EH601", f"fc.weight reads hidden states of width {width}, {said}", where="fc.weight")
    count = _settle(case, "num_aux_hidden_states", fc[1] // width, f"fc.weight and the target's hidden size {width}")
    return {"target_hidden_size": width, "num_aux_hidden_states": count}


def _target_width(case: Case, shapes: Mapping[str, Any], columns: int, hidden: int) -> int:
    """The target's hidden size by the best witness: config, fc_norm, target, drafter, number of aux states or ids."""
    norm: tuple[int, ...] | None = shapes.get("fc_norm.0.weight")
    declared: int | None = case.config.get("target_hidden_size")
    if declared or norm:
        return declared or (norm or (hidden,))[0]
    if case.target and columns % case.target.hidden_size == 0:
        return case.target.hidden_size
    ids, _ = declared_ids(case)
    counts = [
        case.config.get("num_aux_hidden_states"),
        columns // hidden if columns % hidden == 0 else None,
        len(ids or ()),
    ]
    count = next((count for count in counts if count and columns % count == 0), 3)
    return max(1, columns // count)


def _heads(case: Case, shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Attention heads of a llama or qwen3 drafter."""
    heads = case.config.get("num_attention_heads")
    rows = {side: shapes[name][0] for side in "qk" if (name := f"{_FIRST}.{side}_proj.weight") in shapes}
    for side in [side for side in "qk" if side not in rows]:
        name = f"{_FIRST}.{side}_proj.weight"
        case.journal.error("EH302", f"{name} is missing; vLLM would serve it with random values", where=name)
    if not heads:
        case.journal.error("EH201", "num_attention_heads is missing", where="config.json: num_attention_heads")
    if not heads or len(rows) < 2:
        return {}
    norm = shapes.get(f"{_FIRST}.q_norm.weight")
    declared = case.config.get("head_dim", norm[0] if norm else None)
    head_dim = declared or max(1, rows["q"] // heads)
    kv_heads = rows["k"] // head_dim
    stated = case.config.get("num_key_value_heads", kv_heads)
    if heads * head_dim != rows["q"] or rows["k"] % head_dim or (declared is None and stated != kv_heads):
        case.journal.error(
            "EH202",
            f"{heads} heads and {stated} key/value heads of head_dim {head_dim} do not fit q_proj with {rows['q']} and "
            f"k_proj with {rows['k']} rows",
            where="config.json: head_dim",
        )
        return {}
    _settle(case, "num_key_value_heads", kv_heads, "k_proj's rows")
    case.journal.reasons.setdefault("head_dim", "from q_proj's rows")
    return {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim, "mla": {}}


def _mla(case: Case) -> dict[str, Any]:
    """Attention dimensions of an MLA drafter; shapes alone cannot part them, so the config must hold them."""
    heads = case.config.get("num_attention_heads")
    dims = {key: case.config.get(key) for key in MLA_KEYS}
    for key, value in {"num_attention_heads": heads, **dims}.items():
        if value is None and key != "q_lora_rank":
            case.journal.error("EH201", f"an MLA drafter's config must have {key}", where=f"config.json: {key}")
    case.journal.reasons["head_dim"] = "an MLA drafter's heads have dimensions of their own"
    kv_heads = case.config.get("num_key_value_heads")
    return {"num_attention_heads": heads, "num_key_value_heads": kv_heads or heads, "head_dim": None, "mla": dims}
