"""Sound drafters that other converters are known to damage in silence, in the layouts of common trainers."""

from __future__ import annotations

from dataclasses import replace

from .automodel import layout
from .configs import llama
from .drafter import Drafter, prefixed
from .safeailab import safeailab
from .source import Fixtures, Source, expect
from .specforge import SHALLOW_OUT, specforge


def _fc_norm() -> Source:
    flags = {"fc_norm": True, "norm_output": True}
    return specforge(
        Drafter(fc_norm=True),
        flags,
        ids=SHALLOW_OUT,
        facts=flags | {"rope_theta": 1000000.0},
        options=("--feedback", "post-norm"),
        refused_without_options=True,
    )


def _model_prefix() -> Source:
    drafter = Drafter(embed=True)
    config = llama(drafter, head_dim=drafter.head_dim, rope_theta=10000.0)
    expected = expect(drafter, "automodel", dropped=("t2d",), warns=("layer ids",))
    return Source(config=config, tensors=layout(drafter), expected=expected)


def _everything_prefixed() -> Source:
    """A whole state dict saved from inside a wrapper, head and vocabulary maps included."""
    source = safeailab(Drafter(), {})
    assert source.expected is not None
    expected = replace(source.expected, producer="automodel", dropped=("model.t2d",))
    return replace(source, tensors=prefixed(source.tensors, "model."), expected=expected)


FIXTURES: Fixtures = {
    "sound-fc-norm": _fc_norm,
    "sound-input-norm": lambda: specforge(Drafter(input_norm=True), {"norm_before_fc": True}, ids=SHALLOW_OUT),
    "sound-model-prefix": _model_prefix,
    "sound-everything-prefixed": _everything_prefixed,
    "sound-two-layers": lambda: specforge(Drafter(layers=2), ids=SHALLOW_OUT),
}
