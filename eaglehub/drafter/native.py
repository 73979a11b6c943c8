"""The native config: a drafter's description as vLLM's drafter classes read it, at the config's top level."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eaglehub.drafter.drafter import Drafter

# Where vLLM reads the aux layer ids, in the IN convention.
TOP_LEVEL = "eagle_aux_hidden_state_layer_ids"

_TORCH_DTYPES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}

_CLASS = "the class that serves this kind of drafter"
_EXPLICIT = "written out: engines and formats differ in the default"
# Why a key is written although the source may not have it, or has it otherwise.
REASONS = {
    "architectures": _CLASS,
    "model_type": _CLASS,
    "hidden_size": "from norm.weight",
    "target_hidden_size": "the width of the target's states that fc reads",
    "vocab_size": "the target's",
    "draft_vocab_size": "from lm_head's rows",
    "num_hidden_layers": "from the layers in the file",
    "attention_bias": "from the biases in the file",
    "mlp_bias": "from the biases in the file",
    "hidden_act": "the default, written out",
    "num_aux_hidden_states": "vLLM's llama and MLA drafters do not count the top-level ids",
    "fc_norm": _EXPLICIT,
    "norm_output": _EXPLICIT,
    "norm_before_fc": _EXPLICIT,
    "norm_before_residual": _EXPLICIT,
    "use_aux_norm": "spelled fc_norm",
    "rope_theta": "one spelling of RoPE, which every engine reads",
    "rope_scaling": "one spelling of RoPE, which every engine reads",
    "rope_parameters": "spelled rope_theta and rope_scaling, which every engine reads",
    "mask_token_id": "the names under which vLLM versions look for it",
    "pard_token": "the names under which vLLM versions look for it",
    "ptd_token_id": "spelled mask_token_id and pard_token",
    "parallel_drafting": "a setting of the engine's command line",
    "tie_word_embeddings": "the drafter's head is not its embedding",
    "torch_dtype": "the weights' own",
    "dtype": "spelled torch_dtype, which every version reads",
    "eagle_config": "readers that look there first agree with the top level",
    "num_aux_layers": "spelled num_aux_hidden_states",
}


def native_config(drafter: Drafter) -> dict[str, Any]:
    """Config keys and values in vLLM's meaning, in a fixed order; `architectures` and `model_type` are the layout's.

    The count of aux states stands beside the ids: vLLM's llama and MLA classes do not count the top-level list.
    """
    config: dict[str, Any] = {
        "hidden_size": drafter.hidden_size,
        "target_hidden_size": drafter.target_hidden_size,
        "vocab_size": drafter.vocab_size,
        "draft_vocab_size": drafter.draft_vocab_size,
        "num_hidden_layers": drafter.num_hidden_layers,
        "num_attention_heads": drafter.num_attention_heads,
        "num_key_value_heads": drafter.num_key_value_heads,
        "head_dim": drafter.head_dim,
        **drafter.mla,
        "intermediate_size": drafter.intermediate_size,
        "hidden_act": drafter.hidden_act,
        "rms_norm_eps": drafter.rms_norm_eps,
        "attention_bias": drafter.attention_bias,
        "mlp_bias": drafter.mlp_bias,
        "rope_theta": drafter.rope_theta,
        "rope_scaling": copy.deepcopy(drafter.rope_scaling),
        "max_position_embeddings": drafter.max_position_embeddings,
        "num_aux_hidden_states": drafter.num_aux_hidden_states or None,
        TOP_LEVEL: list(drafter.aux_layer_ids) if drafter.aux_layer_ids else None,
        "fc_norm": drafter.fc_norm,
        "norm_output": drafter.norm_output,
        "norm_before_fc": drafter.norm_before_fc,
        "norm_before_residual": drafter.norm_before_residual,
        "mask_token_id": drafter.mask_token_id,
        # The name that vLLM before 0.32 reads.
        "pard_token": drafter.mask_token_id,
        "tie_word_embeddings": False,
        "torch_dtype": _TORCH_DTYPES[drafter.dtype],
        "eagle_config": {"use_aux_hidden_state": drafter.num_aux_hidden_states > 0},
    }
    present = {
        key: value for key, value in config.items() if value is not None or (key == "q_lora_rank" and drafter.mla)
    }
    extra = copy.deepcopy(dict(drafter.extra))
    present["eagle_config"] |= extra.pop("eagle_config", {})
    return present | extra
