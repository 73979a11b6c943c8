"""NVIDIA ModelOpt: nested ids in the OUT convention, except where NVIDIA published otherwise; no `t2d`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .configs import YARN, llama, nested_ids
from .drafter import Config, Drafter, Tensors, midlayer
from .source import Fixtures, Source, expect

OUT, IN = [1, 5, 8], [2, 6, 9]
_EAGLE = {
    "use_input_layernorm_in_first_layer": True,
    "use_last_layernorm": True,
    "use_mtp_layernorm": False,
    "next_layer_regular": True,
    "parallel_draft_step": 1,
    "parallel_draft_heads_num_layers": 1,
}


def template(drafter: Drafter, ids: list[int], **eagle: Any) -> Config:
    """A config as the exporter fills it: what the drafter leaves open comes from the base model, or is null."""
    return llama(
        drafter,
        attention_bias=False,
        attention_dropout=0.0,
        head_dim=drafter.head_dim,
        mlp_bias=False,
        pretraining_tp=1,
        rope_scaling=YARN,
        rope_theta=150000,
        pad_token_id=None,
        eagle_config=nested_ids(ids, **_EAGLE) | eagle,
    )


def modelopt(drafter: Drafter, tensors: Tensors | None = None, keys: Config | None = None, **rest: Any) -> Source:
    """The exported checkpoint; `tensors` are the canonical ones unless given, `keys` go on top."""
    facts = {"rope_theta": 150000, "rope_scaling": YARN}
    return Source(
        config=template(drafter, OUT) | (keys or {}),
        tensors=drafter.weights() if tensors is None else tensors,
        expected=expect(drafter, "modelopt", facts, **{"ids": IN} | rest),
    )


def _gpt_oss_v3() -> Source:
    """NVIDIA's upload for a target of 36 layers: id 36 is the final state, so the list is in the IN convention."""
    drafter = Drafter(input_norm=True)
    return modelopt(
        drafter,
        keys={"eagle_config": nested_ids([24, 30, 36], norm_before_fc=True, **_EAGLE)},
        ids=[24, 30, 36],
        options=("--aux-id-convention", "in"),
        target="gpt_oss",
        refused_without_options=True,
    )


def no_aux() -> Source:
    """A head on the final hidden state alone, which vLLM's current runner cannot serve."""
    source = modelopt(Drafter(), keys={"eagle_config": nested_ids([], **_EAGLE) | {"use_aux_hidden_state": False}})
    aux_only = ("fc.weight", "layers.0.hidden_norm.weight")
    tensors = {name: array for name, array in source.tensors.items() if name not in aux_only}
    return replace(source, tensors=tensors, expected=None)


def _deep() -> Source:
    """Megatron's deep export: `midlayer.{i}`, whose later layers call their input layer norm `hidden_norm`."""
    drafter = Drafter(layers=2, draft_vocab=160)
    renamed = {
        name.replace("layers.1.input_layernorm", "layers.1.hidden_norm").replace("layers.", "midlayer.", 1): array
        for name, array in drafter.weights().items()
    }
    return modelopt(drafter, renamed, {"architectures": ["LlamaForCausalLMEagle3Deep"]})


def megatron(drafter: Drafter) -> Source:
    """Megatron's export, which loses `d2t`: sound only when the vocabulary is whole."""
    tensors = {name: array for name, array in midlayer(drafter.weights()).items() if name != "d2t"}
    return modelopt(drafter, tensors)


def _training_state() -> Source:
    """Weights as they stand in the training checkpoint, under the wrapper's module name."""
    drafter = Drafter()
    return modelopt(drafter, {f"eagle_module.{name}": array for name, array in drafter.weights().items()})


FIXTURES: Fixtures = {
    "modelopt": lambda: modelopt(Drafter()),
    "modelopt-gpt-oss-v3": _gpt_oss_v3,
    "modelopt-no-aux": no_aux,
    "modelopt-deep": _deep,
    "modelopt-megatron": lambda: megatron(Drafter(draft_vocab=160)),
    "modelopt-two-layers": lambda: modelopt(Drafter(layers=2)),
    "modelopt-training-state": _training_state,
}
