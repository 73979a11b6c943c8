"""vLLM's own layout, and files that hold to it but for one thing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .configs import llama, mla, nested_ids
from .drafter import Config, Drafter, values
from .source import Fixtures, Source, expect

IDS = [2, 6, 9]


def vllm(drafter: Drafter, *, ids: list[int] = IDS, **flags: Any) -> Source:
    """A checkpoint as this project writes it: vLLM's names, ids at top level, every flag spelled out."""
    facts = drafter.facts() | flags
    return Source(
        config=_template(drafter) | facts | {"eagle_aux_hidden_state_layer_ids": ids},
        tensors=drafter.weights(),
        expected=expect(drafter, "vllm", flags, ids=ids),
    )


def _template(drafter: Drafter) -> Config:
    use_aux = {"eagle_config": {"use_aux_hidden_state": True, "norm_before_fc": drafter.input_norm}}
    return (mla(drafter) if drafter.mla else llama(drafter)) | {"max_position_embeddings": 8192} | use_aux


def _two_layers() -> Source:
    """With the later layer's norm under both names, as a file for vLLM and SGLang has it."""
    source = vllm(Drafter(layers=2))
    twin = {"layers.1.hidden_norm.weight": source.tensors["layers.1.input_layernorm.weight"]}
    return replace(source, tensors=source.tensors | twin)


def _nested_ids_unknown() -> Source:
    """vLLM's names, SGLang's place for the ids, and no word about who wrote it."""
    drafter = Drafter()
    expected = expect(
        drafter, "vllm", ids=[2, 6, 9], options=("--aux-id-convention", "out"), refused_without_options=True
    )
    config = llama(drafter, eagle_config=nested_ids([1, 5, 8]))
    return Source(config=config, tensors=drafter.weights(), expected=expected)


def _biases() -> Source:
    """Biases that the config does not mention: vLLM would leave them out without a word."""
    source = vllm(Drafter(attention_bias=True, mlp_bias=True))
    for key in ("attention_bias", "mlp_bias"):
        del source.config[key]
    return source


def _sharded() -> Source:
    return replace(vllm(Drafter(embed=True)), shards=3)


def _mixed_dtypes() -> Source:
    """Norms and projection in float32, the head in float16, the rest in bfloat16: kept as they are."""
    source = vllm(Drafter())
    special = {name: "float32" for name in source.tensors if "norm" in name or name == "fc.weight"}
    special |= {"lm_head.weight": "float16"}
    tensors = source.tensors | {
        name: values(name, source.tensors[name].shape, dtype) for name, dtype in special.items()
    }
    assert source.expected is not None
    return replace(source, tensors=tensors, expected=replace(source.expected, tensors=tensors))


FIXTURES: Fixtures = {
    "vllm-3": lambda: vllm(Drafter()),
    "vllm-3.1": lambda: vllm(Drafter(fc_norm=True), norm_output=True),
    "vllm-qwen3": lambda: vllm(Drafter(qk_norm=True, embed=True)),
    "vllm-mla": lambda: vllm(Drafter(mla=True, draft_vocab=160, embed=True)),
    "vllm-mla-shared": lambda: vllm(Drafter(mla=True)),
    "vllm-two-layers": _two_layers,
    "vllm-four-aux": lambda: vllm(Drafter(aux=4), ids=[1, 4, 7, 10]),
    "vllm-input-norm": lambda: vllm(Drafter(input_norm=True), norm_before_residual=True),
    "vllm-float32": lambda: vllm(Drafter(dtype="float32")),
    "nested-ids-unknown": _nested_ids_unknown,
    "biases": _biases,
    "sharded": _sharded,
    "mixed-dtypes": _mixed_dtypes,
}
