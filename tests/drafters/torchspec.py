"""TorchSpec: OUT ids, except for Kimi heads exported for vLLM; the version is stamped in config and header."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .configs import llama, mla, nested_ids
from .drafter import Config, Drafter, Tensors, midlayer, prefixed, with_t2d
from .source import Fixtures, Source, expect

_VERSION = "0.3.0"
_KIMI_EAGLE = {
    "use_input_layernorm_in_first_layer": True,
    "use_last_layernorm": True,
    "use_mtp_layernorm": False,
}


def torchspec(drafter: Drafter, tensors: Tensors, keys: Config, **expected: Any) -> Source:
    """A single-file export of a Llama-type drafter, its own embedding included."""
    config = llama(drafter, head_dim=drafter.head_dim, rope_scaling=None, rope_theta=1000000.0, **keys)
    return _stamped(config, tensors, expect(drafter, "torchspec", **expected))


def _stamped(config: Config, tensors: Tensors, expected: Any) -> Source:
    return Source(
        config=config | {"_torchspec_version": _VERSION},
        tensors=tensors,
        expected=expected,
        metadata={"torchspec_version": _VERSION},
    )


def _llama(*, native: bool) -> Source:
    drafter = Drafter(embed=True, draft_vocab=160)
    tensors = midlayer(drafter.weights()) if native else drafter.weights()
    return torchspec(drafter, tensors, {}, facts={"rope_theta": 1000000.0})


def _three_one() -> Source:
    """Exported for vLLM with the 3.1 flags; only Kimi heads have their ids shifted by that."""
    drafter = Drafter(embed=True, draft_vocab=160, fc_norm=True)
    flags = {"fc_norm": True, "norm_output": True}
    keys = flags | {"eagle_config": nested_ids([1, 5, 8])}
    return torchspec(drafter, drafter.weights(), keys, facts=flags | {"rope_theta": 1000000.0}, ids=[2, 6, 9])


def _kimi(ids: list[int], *, native: bool) -> Source:
    drafter = Drafter(embed=True, draft_vocab=160, fc_norm=True, mla=True)
    flags = {"fc_norm": True, "norm_output": True}
    config = mla(drafter, eagle_config=nested_ids(ids, **_KIMI_EAGLE), **flags)
    tensors = midlayer(drafter.weights()) if native else drafter.weights()
    expected = expect(drafter, "torchspec", flags | {"rope_theta": 50000.0}, ids=[2, 30, 58])
    return _stamped(config, tensors, expected)


def pruned() -> Source:
    """Pruned at export by the offsets in place of the ids: the head's rows repeat, the right ones are lost."""
    drafter = Drafter(embed=True)
    whole = Drafter(draft_vocab=160).weights()["lm_head.weight"]
    tensors = with_t2d(drafter) | {"lm_head.weight": whole[drafter.d2t()]}
    return replace(torchspec(drafter, tensors, {}), expected=None)


def _raw() -> Source:
    """The training state gathered into one file, before any export."""
    drafter = Drafter(embed=True, draft_vocab=160)
    return Source(
        config=llama(drafter, head_dim=drafter.head_dim, rope_scaling=None, rope_theta=1000000.0),
        tensors=prefixed(midlayer(drafter.weights()), "model.draft_model."),
        expected=expect(drafter, "torchspec", {"rope_theta": 1000000.0}),
    )


FIXTURES: Fixtures = {
    "torchspec": lambda: _llama(native=True),
    "torchspec-vllm": _three_one,
    "torchspec-vllm-plain": lambda: _llama(native=False),
    "torchspec-kimi": lambda: _kimi([2, 30, 58], native=False),
    "torchspec-kimi-native": lambda: _kimi([1, 29, 57], native=True),
    "torchspec-pruned": pruned,
    "torchspec-raw": _raw,
}
