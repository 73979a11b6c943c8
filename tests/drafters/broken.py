"""Checkpoints that must be refused, each with the tensor or key that the finding must name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from . import modelopt, torchspec
from .automodel import automodel, qwen3_target
from .configs import mla, nested_ids
from .drafter import Array, Config, Drafter, Tensors, values
from .safeailab import angelslim, safeailab
from .specforge import SHALLOW_OUT, specforge
from .speculators import speculators

if TYPE_CHECKING:
    from collections.abc import Callable

    from .source import Source


def _edited(source: Source, tensors: Tensors | None = None, keys: Config | None = None) -> Source:
    return replace(source, tensors=source.tensors | (tensors or {}), config=source.config | (keys or {}), expected=None)


def _without(source: Source, *names: str) -> Source:
    assert set(names) <= source.tensors.keys()
    tensors = {name: array for name, array in source.tensors.items() if name not in names}
    return replace(source, tensors=tensors, expected=None)


def _at(array: Array, index: int, value: float) -> Array:
    """A copy with one element of the flattened array replaced."""
    copy = array.copy()
    copy.reshape(-1)[index] = value
    return copy


def _poisoned(name: str, value: float) -> Source:
    source = _plain()
    return _edited(source, {name: _at(source.tensors[name], -1, value)})


def _plain() -> Source:
    return specforge(Drafter(), ids=SHALLOW_OUT)


def _three_one() -> Source:
    return specforge(Drafter(fc_norm=True), {"fc_norm": True}, ids=SHALLOW_OUT)


def _d2t(change: Callable[[Array], Array]) -> Source:
    source = _plain()
    return _edited(source, {"d2t": change(source.tensors["d2t"])})


def _unset_maps() -> Source:
    """The buffers as the trainers initialise them, never filled."""
    source = _plain()
    maps = {"d2t": np.zeros_like(source.tensors["d2t"]), "t2d": np.ones_like(source.tensors["t2d"])}
    return _edited(source, maps)


def _ambiguous_d2t() -> Source:
    """Strictly increasing, within the vocabulary under both readings, and no `t2d` to settle it."""
    return _edited(modelopt.modelopt(Drafter()), {"d2t": 2 * np.arange(48) + 1})


def _early_stop() -> Source:
    """AngelSlim's early-stop heads predict their confidence in extra rows of fc."""
    source = angelslim(Drafter(), {})
    fc = source.tensors["fc.weight"]
    return _edited(source, {"fc.weight": np.concatenate([fc, fc[:1]])})


def _medusa() -> Source:
    heads = "parallel_draft_heads.0.medusa_layers.0.linear"
    extra = {
        f"{heads}.weight": values(f"{heads}.weight", (64, 64), "bfloat16"),
        f"{heads}.bias": values(f"{heads}.bias", (64,), "bfloat16"),
    }
    return _edited(modelopt.modelopt(Drafter()), extra)


def _kimi_k3() -> Source:
    """An output gate that no engine's drafter class has."""
    drafter = Drafter(embed=True, mla=True)
    gate = "model.layers.0.self_attn.g_proj.weight"
    return _edited(automodel(drafter, mla(drafter)), {gate: values(gate, (32, 128), "bfloat16")})


def _no_q_lora() -> Source:
    """Latent attention with a plain query projection."""
    drafter = Drafter(embed=True, mla=True)
    layer = "model.layers.0.self_attn"
    source = automodel(drafter, mla(drafter))
    lora = (f"{layer}.q_a_proj.weight", f"{layer}.q_a_layernorm.weight", f"{layer}.q_b_proj.weight")
    plain = {f"{layer}.q_proj.weight": values("q_proj", (64, 128), "bfloat16")}
    return _edited(_without(source, *lora), plain, {"q_lora_rank": None})


def _full_lm_head() -> Source:
    """The base model's whole head beside a pruned vocabulary."""
    head = Drafter(draft_vocab=160).weights()["lm_head.weight"]
    return _edited(modelopt.modelopt(Drafter()), {"lm_head.weight": head})


def _rope_conflict() -> Source:
    rope = {"rope_theta": 500000.0, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}
    return _edited(_plain(), keys=rope)


def _ids(*ids: int) -> Source:
    return _edited(_plain(), keys={"eagle_config": nested_ids(list(ids))})


def _gelu() -> Source:
    drafter = Drafter(embed=True)
    return _edited(automodel(drafter, qwen3_target(drafter)), keys={"hidden_act": "gelu_pytorch_tanh"})


_UNKNOWN = "midlayer.self_attn.attention_sink"
_Q_PROJ = "midlayer.self_attn.q_proj.weight"
_IDS_KEY = "eagle_aux_hidden_state_layer_ids"

FIXTURES: dict[str, tuple[Callable[[], Source], str]] = {
    "no-fc": (lambda: _without(_plain(), "fc.weight"), "fc.weight"),
    "no-q-proj": (lambda: _without(_plain(), _Q_PROJ), "self_attn.q_proj.weight"),
    "no-lm-head": (lambda: _without(safeailab(Drafter(), {}), "lm_head.weight"), "lm_head.weight"),
    "no-fc-norm-chunk": (lambda: _without(_three_one(), "fc_norm.2.weight"), "fc_norm.2.weight"),
    "fc-norm-claimed": (lambda: _edited(_plain(), keys={"fc_norm": True}), "fc_norm"),
    "nan-lm-head": (lambda: _poisoned("lm_head.weight", np.nan), "lm_head.weight"),
    "nan-norm": (lambda: _poisoned("norm.weight", np.nan), "norm.weight"),
    "inf-q-proj": (lambda: _poisoned(_Q_PROJ, np.inf), "self_attn.q_proj.weight"),
    "d2t-out-of-range": (lambda: _d2t(lambda d2t: _at(d2t, -1, 10**6)), "d2t"),
    "d2t-repeats": (lambda: _d2t(lambda d2t: _at(d2t, 5, d2t[4] - 1)), "d2t"),
    "d2t-ambiguous": (_ambiguous_d2t, "d2t"),
    "zero-d2t": (_unset_maps, "d2t"),
    "t2d-all-false": (lambda: _edited(_plain(), {"t2d": np.zeros(160, dtype=np.bool_)}), "t2d"),
    "modelopt-megatron-no-d2t": (lambda: replace(modelopt.megatron(Drafter()), expected=None), "d2t"),
    "modelopt-no-aux": (modelopt.no_aux, "hidden_norm"),
    "modelopt-full-lm-head": (_full_lm_head, "lm_head.weight"),
    "torchspec-pruned": (torchspec.pruned, "lm_head.weight"),
    "early-stop-fc": (_early_stop, "fc.weight"),
    "unknown-tensor": (lambda: _edited(_plain(), {_UNKNOWN: values(_UNKNOWN, (4,), "bfloat16")}), "attention_sink"),
    "kimi-k3-g-proj": (_kimi_k3, "g_proj"),
    "eagle-medusa": (_medusa, "parallel_draft_heads"),
    "mla-no-q-lora": (_no_q_lora, "q_lora_rank"),
    "gelu": (_gelu, "hidden_act"),
    "head-dim": (lambda: _edited(_plain(), keys={"head_dim": 32}), "head_dim"),
    "rope-conflict": (_rope_conflict, "rope_theta"),
    "two-ids-three-states": (lambda: _ids(1, 5), _IDS_KEY),
    "repeated-ids": (lambda: _ids(1, 5, 5), _IDS_KEY),
    "speculators-dflash": (
        lambda: replace(speculators(Drafter(embed=True), algorithm="dflash"), expected=None),
        "dflash",
    ),
}
