"""Config keys that a drafter must not keep, and those it may."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from eaglehub.drafter.drafter import MLA_KEYS, Drafter
from eaglehub.formats.config_paths import MISSING, take

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.formats.spec import FormatSpec
    from eaglehub.reading.case import Case
    from eaglehub.reading.journal import Journal

# Everything that the canonical description states itself.
_STATED = (
    *(field.name for field in fields(Drafter)),
    *MLA_KEYS,
    "architectures", "model_type", "tie_word_embeddings", "torch_dtype", "dtype", "rope_parameters", "use_aux_norm",
    "eagle_aux_hidden_state_layer_ids", "eagle_config.eagle_aux_hidden_state_layer_ids", "num_aux_layers",
    "eagle_config.use_aux_hidden_state", "eagle_config.norm_before_fc",
    "mask_token_id", "pard_token", "ptd_token_id", "parallel_drafting",
)  # fmt: skip

# Kept even where a config is a copy of the target's.
_HARMLESS = (
    "bos_token_id", "eos_token_id", "pad_token_id", "initializer_range", "use_cache", "pretraining_tp",
    "attention_dropout", "transformers_version",
)  # fmt: skip

_NEVER = {
    "auto_map": "names code to run; a drafter needs none",
    "num_nextn_predict_layers": "belongs to multi-token prediction, which engines would look for",
    "_name_or_path": "a path of the machine it was made on",
    "attn_implementation": "a setting of the machine it was made on",
    "_attn_implementation": "a setting of the machine it was made on",
}


def flatten(config: Mapping[str, Any], spec: FormatSpec, journal: Journal) -> dict[str, Any]:
    """A deep copy of the config with the nested layer config, where the format has one, lifted to the top level."""
    flattened = copy.deepcopy(dict(config))
    if not spec.layer_config:
        return flattened
    nested = flattened.pop(spec.layer_config, {})
    journal.reasons[spec.layer_config] = "lifted to the top level, where vLLM's drafter classes read it"
    if not isinstance(nested, dict):
        journal.error("EH201", f"{spec.layer_config} is not an object", where=f"config.json: {spec.layer_config}")
        return flattened
    journal.reasons.update(dict.fromkeys(nested, f"lifted from {spec.layer_config}"))
    return nested | flattened


def remaining_keys(case: Case, quantized: bool, num_layers: int) -> dict[str, Any]:
    """What is left of the config once all that the canonical description states, or must go, is taken out."""
    rest = copy.deepcopy(dict(case.config))
    for path in _STATED:
        take(rest, path)
    for path, reason in {**_NEVER, **case.spec.drop_keys}.items():
        if take(rest, path) is not MISSING:
            case.journal.reasons[path] = reason
            _report(case, path, reason)
    if "quantization_config" in rest and not quantized:
        reason = "inherited: the file holds no scale tensors"
        del rest["quantization_config"]
        case.journal.reasons["quantization_config"] = reason
        case.journal.note("EH206", f"quantization_config dropped: {reason}", where="config.json: quantization_config")
    if case.spec.other_keys == "drop":
        for key in [key for key in rest if key not in (*_HARMLESS, "quantization_config")]:
            del rest[key]
            case.journal.reasons.setdefault(key, "the target's; no drafter class reads it")
    _check_layer_types(case, rest, num_layers)
    return rest


def _report(case: Case, path: str, reason: str) -> None:
    """The dropped keys that would have changed how the drafter is served deserve a line of their own."""
    if path == "auto_map":
        case.journal.note("EH901", f"auto_map dropped: it {reason}", where="config.json: auto_map")
    elif path == "layer_types" and "sliding_attention" in (case.config.get(path) or []):
        case.journal.note("EH205", f"layer_types dropped: {reason}", where="config.json: layer_types")


def _check_layer_types(case: Case, rest: Mapping[str, Any], num_layers: int) -> None:
    kinds = rest.get("layer_types")
    if kinds is not None and (not isinstance(kinds, list) or len(kinds) != num_layers):
        count = len(kinds) if isinstance(kinds, list) else kinds
        case.journal.error(
            "EH205", f"layer_types describes {count} layers, the drafter has {num_layers}", "config.json: layer_types"
        )
