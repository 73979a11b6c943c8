"""Config keys that a drafter must not keep, and those it may."""

from __future__ import annotations

import copy
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from eaglehub.drafter.drafter import MLA_KEYS, Drafter
from eaglehub.formats.config_paths import MISSING, flat, take
from eaglehub.reading.layer_ids import NESTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.formats.spec import FormatSpec
    from eaglehub.reading.case import Case
    from eaglehub.reading.journal import Journal

# Everything that the canonical description states itself.
_STATED = (
    *(field.name for field in fields(Drafter)),
    *MLA_KEYS,
    "architectures", "model_type", "tie_word_embeddings", "torch_dtype", "dtype", "rope_parameters",
    "eagle_aux_hidden_state_layer_ids", "eagle_config.eagle_aux_hidden_state_layer_ids", "eagle_config.layer_ids",
    "num_aux_layers", "eagle_config.use_aux_hidden_state", "mask_token_id", "pard_token", "ptd_token_id",
    "parallel_drafting",
)  # fmt: skip

# Kept even where a config is a copy of the target's.
_HARMLESS = (
    "bos_token_id", "eos_token_id", "pad_token_id", "initializer_range", "use_cache", "pretraining_tp",
    "attention_dropout", "transformers_version",
)  # fmt: skip

_NEVER = {
    "auto_map": "names code to run; a drafter needs none",
    "num_nextn_predict_layers": "belongs to multi-token prediction, which engines would look for",
    "bias": "vLLM would build biases that the file does not hold",
    "qkv_bias": "vLLM would build biases that the file does not hold",
    "_name_or_path": "a path of the machine it was made on",
    "attn_implementation": "a setting of the machine it was made on",
    "_attn_implementation": "a setting of the machine it was made on",
}


_MACHINE_PATH = re.compile(r"(?:/|~/|\.\.?/|[A-Za-z]:[\\/]|\\\\)\S")


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
    # vLLM takes the layer's own keys from there, whatever else stands at the top.
    return flattened | nested


def remaining_keys(case: Case, quantized: bool, num_layers: int) -> dict[str, Any]:
    """What is left of the config once all that the canonical description states, or must go, is taken out."""
    rest = copy.deepcopy(dict(case.config))
    flag_keys = [key for flag in case.spec.flags.values() for key in flag.keys]
    for path in (*_STATED, *flag_keys, case.spec.layer_ids.nested or NESTED):
        take(rest, path)
    _drop_machine_paths(case, rest)
    for path, reason in {**_NEVER, **case.spec.drop_keys}.items():
        if take(rest, path) is not MISSING:
            case.journal.reasons[path] = reason
            _report(case, path, reason)
    if quantized and "quantization_config" not in rest:
        case.journal.error(
            "EH206",
            "there are scale tensors but no quantization_config: the engine would take the weights as they stand",
            where="config.json: quantization_config",
        )
    if "quantization_config" in rest and not quantized:
        reason = "inherited: the file holds no scale tensors"
        del rest["quantization_config"]
        case.journal.reasons["quantization_config"] = reason
        case.journal.note(
            "EH206", f"quantization_config is not the drafter's: {reason}", where="config.json: quantization_config"
        )
    if case.spec.other_keys == "drop":
        for key in [key for key in rest if key not in (*_HARMLESS, "quantization_config")]:
            del rest[key]
            case.journal.reasons.setdefault(key, "the target's; no drafter class reads it")
    _check_layer_types(case, rest, num_layers)
    return rest


def _drop_machine_paths(case: Case, rest: dict[str, Any]) -> None:
    """Paths of the machine it was made on are nobody else's business."""
    for path, value in list(flat(rest)):
        if isinstance(value, str) and _MACHINE_PATH.match(value):
            take(rest, path)
            case.journal.reasons[path] = "a path of the machine it was made on"


def _report(case: Case, path: str, reason: str) -> None:
    """The dropped keys that would have changed how the drafter is served deserve a line of their own."""
    if path == "auto_map":
        case.journal.note("EH901", f"auto_map dropped: it {reason}", where="config.json: auto_map")
    elif path == "layer_types" and "sliding_attention" in (case.config.get(path, [])):
        case.journal.note("EH205", f"layer_types are not the drafter's: {reason}", where="config.json: layer_types")


def _check_layer_types(case: Case, rest: Mapping[str, Any], num_layers: int) -> None:
    kinds = rest.get("layer_types")
    if kinds is not None and len(kinds) != num_layers:
        case.journal.error(
            "EH205",
            f"layer_types describes {len(kinds)} layers, the drafter has {num_layers}",
            "config.json: layer_types",
        )
