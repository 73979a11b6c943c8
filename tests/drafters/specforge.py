"""SpecForge and its forks: nested layer ids in the OUT convention (one less than vLLM's)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .configs import llama, nested_ids
from .drafter import Config, Drafter, in_aux_order, midlayer, with_t2d
from .source import Fixtures, Source, expect

OUT, IN = [1, 17, 33], [2, 18, 34]
SHALLOW_OUT, SHALLOW_IN = [1, 5, 8], [2, 6, 9]


def template(drafter: Drafter, **more: Any) -> Config:
    """A config as SpecForge's own templates spell it; ids and 3.1 flags come on top."""
    return (
        llama(drafter)
        | {
            "attention_bias": False,
            "attention_dropout": 0.0,
            "head_dim": drafter.head_dim,
            "max_window_layers": 48,
            "rope_scaling": None,
            "rope_theta": 1000000.0,
            "sliding_window": None,
            "use_sliding_window": False,
        }
        | more
    )


def specforge(
    drafter: Drafter,
    keys: Config | None = None,
    producer: str = "specforge",
    *,
    ids: list[int] | None = None,
    **expected: Any,
) -> Source:
    """The SGLang export: one `midlayer`, both vocabulary maps always; `ids` are OUT and absent when None."""
    nested = {} if ids is None else {"eagle_config": nested_ids(ids)}
    expected = {
        "facts": {"rope_theta": 1000000.0},
        "dropped": ("t2d",) if drafter.pruned else ("t2d", "d2t"),
    } | expected
    shifted = None if ids is None else [layer + 1 for layer in ids]
    return Source(
        config=template(drafter) | nested | (keys or {}),
        tensors=midlayer(with_t2d(drafter)),
        expected=expect(drafter, producer, ids=shifted, **expected),
    )


def _full_vocab() -> Source:
    """The maps are registered although nothing is pruned: zeros and ones."""
    return specforge(Drafter(draft_vocab=160), ids=SHALLOW_OUT)


def _three_one() -> Source:
    """Trained before `norm_output` got its present meaning, which nothing in the checkpoint says."""
    return specforge(
        Drafter(fc_norm=True),
        {"fc_norm": True, "norm_output": True},
        options=("--feedback", "pre-norm"),
        refused_without_options=True,
    )


def _legacy_aux_norm() -> Source:
    """The fork that named the norms by depth; without a `norm_output` key its feedback is not known."""
    source = specforge(
        Drafter(fc_norm=True),
        {"use_aux_norm": True},
        "legacy-aux-norm",
        ids=SHALLOW_OUT,
        options=("--feedback", "pre-norm"),
        refused_without_options=True,
    )
    legacy = {f"fc_norm.{i}.weight": f"aux_norm_{depth}.weight" for i, depth in enumerate(("low", "mid", "high"))}
    tensors = {legacy.get(name, name): array for name, array in source.tensors.items()}
    return replace(source, tensors=tensors)


def _unsorted_ids() -> Source:
    """vLLM hands the aux states over in ascending order, so fc's column blocks and the norms must move."""
    written = [8, 1, 5]
    drafter = Drafter(fc_norm=True)
    source = specforge(drafter, {"fc_norm": True, "eagle_config": nested_ids(written)}, ids=SHALLOW_OUT)
    return replace(source, tensors=in_aux_order(source.tensors, written))


def _p_eagle() -> Source:
    """Parallel drafting: two layers, a mask token and its learned state."""
    drafter = Drafter(layers=2, embed=True, mask_hidden=True)
    flags = {"norm_before_residual": True, "mask_token_id": 159}
    return Source(
        config=template(drafter, architectures=["PEagleDraftModel"], **flags),
        tensors=with_t2d(drafter),
        expected=expect(drafter, "p-eagle", {"rope_theta": 1000000.0, "pard_token": 159} | flags, dropped=("t2d",)),
    )


FIXTURES: Fixtures = {
    "specforge": lambda: specforge(Drafter(), ids=OUT),
    "specforge-hf-export": lambda: specforge(Drafter(embed=True), ids=OUT),
    "specforge-default-ids": lambda: specforge(Drafter()),
    "specforge-full-vocab": _full_vocab,
    "specforge-3.1": _three_one,
    "specforge-norm-output-false": lambda: specforge(Drafter(fc_norm=True), {"fc_norm": True, "norm_output": False}),
    "legacy-aux-norm": _legacy_aux_norm,
    "unsorted-ids": _unsorted_ids,
    "p-eagle": _p_eagle,
}
