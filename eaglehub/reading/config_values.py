"""What values the known config keys may have, checked once: the steps of a reading find only good values or none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from eaglehub.formats.config_paths import MISSING, lookup, take

if TYPE_CHECKING:
    from eaglehub.reading.journal import Journal


class Kind(NamedTuple):
    """A type with its range; `words` name it in messages."""

    type: type
    words: str
    low: float = -math.inf
    high: float = math.inf


_SIZE = Kind(int, "a positive integer", 1, 2**24)
_TOKEN = Kind(int, "a token id", 0, 2**24)
_POSITIVE = Kind(float, "a positive number", 1e-30, 1e30)
_SWITCH = Kind(bool, "true or false")
_OBJECT = Kind(dict, "an object")
_LIST = Kind(list, "a list")
_TEXT = Kind(str, "a text")

_KINDS = {
    "eagle_config": _OBJECT,
    "rope_parameters": _OBJECT,
    "rope_scaling": _OBJECT,
    "quantization_config": _OBJECT,
    "hidden_size": _SIZE,
    "target_hidden_size": _SIZE,
    "vocab_size": _SIZE,
    "draft_vocab_size": _SIZE,
    "num_hidden_layers": _SIZE,
    "num_attention_heads": _SIZE,
    "num_key_value_heads": _SIZE,
    "head_dim": _SIZE,
    "intermediate_size": _SIZE,
    "num_aux_hidden_states": _SIZE,
    "num_aux_layers": _SIZE,
    "q_lora_rank": _SIZE,
    "kv_lora_rank": _SIZE,
    "qk_nope_head_dim": _SIZE,
    "qk_rope_head_dim": _SIZE,
    "v_head_dim": _SIZE,
    "max_position_embeddings": Kind(int, "a positive integer", 1, 2**31 - 1),
    "mask_token_id": _TOKEN,
    "pard_token": _TOKEN,
    "ptd_token_id": _TOKEN,
    "rms_norm_eps": _POSITIVE,
    "rope_theta": _POSITIVE,
    "rope_parameters.rope_theta": _POSITIVE,
    "rope_parameters.full_attention": _OBJECT,
    "rope_parameters.full_attention.rope_theta": _POSITIVE,
    "rope_scaling.rope_theta": _POSITIVE,
    "hidden_act": _TEXT,
    "model_type": _TEXT,
    "layer_types": _LIST,
    "attention_bias": _SWITCH,
    "mlp_bias": _SWITCH,
    "tie_word_embeddings": _SWITCH,
    "parallel_drafting": _SWITCH,
    "eagle_config.use_aux_hidden_state": _SWITCH,
    "eagle_aux_hidden_state_layer_ids": _LIST,
    "eagle_config.eagle_aux_hidden_state_layer_ids": _LIST,
    "eagle_config.layer_ids": _LIST,
}


def check_values(config: dict[str, Any], journal: Journal) -> None:
    """Take out, in place, the known keys that are null; a wrong type or range is an error and goes as well."""
    for path, kind in _KINDS.items():
        value = lookup(config, path)
        if value is MISSING:
            continue
        if value is not None and not _fits(value, kind):
            key = path.rpartition(".")[2]
            journal.error("EH201", f"{key} is {_shown(value)}, not {kind.words}", f"config.json: {path}")
            value = None
        if value is None:
            take(config, path)


def _fits(value: Any, kind: Kind) -> bool:
    if kind.type in (int, float):
        numbers = (int, float) if kind.type is float else (int,)
        return isinstance(value, numbers) and not isinstance(value, bool) and kind.low <= value <= kind.high
    return isinstance(value, kind.type)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
