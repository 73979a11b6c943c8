"""speculators: everything about the decoder layer nested, layer ids at top level in vLLM's own convention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .configs import llama
from .drafter import Config, Drafter, in_aux_order, with_t2d
from .source import Expected, Fixtures, Source, expect

IDS = [2, 6, 9]
_ARCHITECTURES = {"eagle3": "Eagle3DraftModel", "peagle": "PEagleDraftModel", "dflash": "DFlashDraftModel"}
_FLAT_ONLY = ("architectures", "draft_vocab_size", "torch_dtype", "transformers_version", "tie_word_embeddings")


def speculators(
    drafter: Drafter,
    keys: Config | None = None,
    *,
    layer: Config | None = None,
    algorithm: str = "eagle3",
    ids: list[int] | None = IDS,
) -> Source:
    """A checkpoint of speculators 0.9; `keys` override the top level, `layer` the nested layer config."""
    top = {
        "norm_before_residual": True,
        "norm_before_fc": drafter.input_norm,
        "fc_norm": drafter.fc_norm,
        "norm_output": False,
        "target_hidden_size": None,
        "eagle_aux_hidden_state_layer_ids": ids,
    } | (keys or {})
    return Source(
        config={
            "architectures": [_ARCHITECTURES[algorithm]],
            "auto_map": {"": "config.Eagle3SpeculatorConfig"},
            "speculators_model_type": algorithm,
            "speculators_version": "0.9.0",
            "draft_vocab_size": drafter.draft_vocab,
            "embed_requires_grad": False,
            "tie_word_embeddings": False,
            "torch_dtype": drafter.dtype,
            "transformers_version": "4.57.1",
            "transformer_layer_config": _layer_config(drafter) | (layer or {}),
            "speculators_config": _proposals(algorithm),
        }
        | top,
        tensors=with_t2d(drafter) if drafter.pruned else drafter.weights(),
        expected=_expected(drafter, top, ids),
    )


def _expected(drafter: Drafter, top: Config, ids: list[int] | None, **rest: Any) -> Expected:
    ids_key = "eagle_aux_hidden_state_layer_ids"
    shown = {key: value for key, value in top.items() if value is not None and key != ids_key}
    return expect(
        drafter,
        "speculators",
        shown | {"rope_theta": 500000.0},
        ids=None if ids is None else sorted(ids),
        absent=("speculators_model_type", "speculators_version"),
        dropped=("t2d",) if drafter.pruned else (),
        **rest,
    )


def _layer_config(drafter: Drafter) -> Config:
    flat = llama(drafter, model_type="qwen3" if drafter.qk_norm else "llama", rope_theta=500000.0)
    attention = {"attention_bias": False, "mlp_bias": False, "head_dim": drafter.head_dim, "rope_scaling": None}
    return {key: value for key, value in flat.items() if key not in _FLAT_ONLY} | attention


def _proposals(algorithm: str) -> Config:
    greedy = {"proposal_type": "greedy", "speculative_tokens": 3, "verifier_accept_k": 1, "accept_tolerance": 0.0}
    return {
        "algorithm": algorithm,
        "default_proposal_method": "greedy",
        "proposal_methods": [greedy],
        "verifier": {"name_or_path": "example/target-1b", "architectures": ["LlamaForCausalLM"]},
    }


def _no_residual_key() -> Source:
    """speculators reads the missing key as false, vLLM as true: the user has to choose."""
    source = speculators(Drafter(embed=True))
    del source.config["norm_before_residual"]
    expected = _expected(
        Drafter(embed=True),
        {"norm_before_residual": False},
        IDS,
        options=("--no-norm-before-residual",),
        refused_without_options=True,
    )
    return replace(source, expected=expected)


def _three_one() -> Source:
    """EAGLE 3.1 with one norm a state, and RoPE in the spelling of transformers 5."""
    rope = {"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}}
    source = speculators(Drafter(embed=True, fc_norm=True), {"norm_output": True}, layer=rope)
    for key in ("rope_theta", "rope_scaling"):
        del source.config["transformer_layer_config"][key]
    return source


def _unsorted_input_norm() -> Source:
    """Ids out of order while one norm spans the three states."""
    written = [9, 2, 6]
    source = speculators(Drafter(embed=True, input_norm=True), ids=written)
    return replace(source, tensors=in_aux_order(source.tensors, written))


def _p_eagle() -> Source:
    drafter = Drafter(layers=2, embed=True, mask_hidden=True)
    source = speculators(drafter, {"mask_token_id": 159}, algorithm="peagle")
    top = {"norm_before_residual": True, "mask_token_id": 159, "pard_token": 159}
    return replace(source, expected=_expected(drafter, top, IDS))


FIXTURES: Fixtures = {
    "speculators-llama": lambda: speculators(Drafter(embed=True)),
    "speculators-qwen3": lambda: speculators(
        Drafter(embed=True, qk_norm=True, input_norm=True),
        {"norm_output": True, "norm_before_residual": False},
        ids=None,
    ),
    "speculators-full-vocab": lambda: speculators(Drafter(embed=True, draft_vocab=160)),
    "speculators-no-residual-key": _no_residual_key,
    "speculators-four-aux": lambda: speculators(Drafter(embed=True, aux=4), ids=[1, 4, 7, 10]),
    "speculators-3.1": _three_one,
    "speculators-unsorted-input-norm": _unsorted_input_norm,
    "speculators-peagle": _p_eagle,
}
