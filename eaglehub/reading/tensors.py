"""A drafter's tensors: well-formed to begin with, complete and of the right shapes in the end."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from eaglehub.drafter.tensors import FLOATS, expected_tensors, is_scale, rank
from eaglehub.plan.plan import TensorStep
from eaglehub.report.findings import Severity

if TYPE_CHECKING:
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.reading.case import Case

# SGLang's name for the later layers' pre-attention norm, which vLLM calls input_layernorm.
_TWIN = re.compile(r"(layers\.[1-9]\d*)\.hidden_norm\.weight")


def part_twin_norms(case: Case) -> None:
    """A later layer's `hidden_norm` must be its `input_layernorm` again, or two engines would serve two drafters."""
    for name in [name for name in case.tensors if _TWIN.fullmatch(name)]:
        step = case.companions[name] = case.tensors.pop(name)
        other = case.tensors.get(_TWIN.sub(r"\1.input_layernorm.weight", name))
        if not (case.values and other and other.source and step.source):
            continue
        if case.checkpoint.read(step.source).tobytes() != case.checkpoint.read(other.source).tobytes():
            case.journal.error(
                "EH304", f"{step.source} differs from {other.source}: vLLM reads the one, SGLang the other", step.source
            )


def well_formed(case: Case) -> bool:
    """Whether each tensor has the axes that its name asks for, none empty, and the layers are numbered through."""
    before = case.journal.errors
    for name, step in case.tensors.items():
        axes = rank(name)
        if axes is not None and (len(step.shape) != axes or 0 in step.shape):
            kind = "a vector" if axes == 1 else "a matrix"
            case.journal.error(
                "EH303", f"{step.source} has shape {list(step.shape)}, not that of {kind}", str(step.source)
            )
    layers = {int(name.split(".")[1]) for name in case.tensors if name.startswith("layers.")}
    gap = next((layer for layer in range(len(layers)) if layer not in layers), None)
    if gap is not None:
        case.journal.error("EH302", f"layer {gap} is missing among layers {sorted(layers)[:8]}", where=f"layers.{gap}")
    return case.journal.errors == before


def complete(case: Case, drafter: Drafter) -> None:
    """VLLM's llama drafter builds an output-projection bias with the other attention biases; none is a zero one."""
    if drafter.architecture != "llama" or not drafter.attention_bias:
        return
    for layer in range(drafter.num_hidden_layers):
        name = f"layers.{layer}.self_attn.o_proj.bias"
        if name not in case.tensors and f"layers.{layer}.self_attn.q_proj.bias" in case.tensors:
            reason = "vLLM builds this bias with q, k and v's and would leave it uninitialised"
            case.tensors[name] = TensorStep(name, None, drafter.dtype, (drafter.hidden_size,), reason=reason)


def compare_tensors(case: Case, drafter: Drafter) -> None:
    """What the description asks for against what there is, put in canonical order in place."""
    expected = expected_tensors(drafter)
    reported = {finding.where for finding in case.journal.findings if finding.severity is Severity.ERROR}
    for name, wanted in expected.items():
        step = case.tensors.get(name)
        if reported & {name, step.source if step else name}:
            continue
        if step is None:
            if name.removesuffix("weight") + "weight_packed" not in case.tensors:
                case.journal.error(
                    "EH302", f"{name} {wanted.formula} is missing; vLLM would serve it with random values", name
                )
        elif step.shape != wanted.shape and not (drafter.quantized and step.dtype not in FLOATS):
            case.journal.error(
                "EH303",
                f"{step.source} has shape {list(step.shape)}, but {wanted.formula} is {list(wanted.shape)}",
                where=str(step.source),
            )
    for name, step in case.tensors.items():
        where = step.source or name
        if where in reported or _is_companion(case, name, drafter):
            continue
        if name not in expected:
            case.journal.error("EH301", f"{where} has no place in a {drafter.architecture} EAGLE-3 drafter", where)
        elif step.dtype not in FLOATS and name != "d2t" and not _has_scale(case, name):
            case.journal.error(
                "EH305", f"{where} is stored as {step.dtype} without a scale: no weight of a drafter is", where
            )
    ordered = [
        *(name for name in expected if name in case.tensors),
        *(name for name in case.tensors if name not in expected),
    ]
    items = [(name, case.tensors[name]) for name in ordered]
    case.tensors.clear()
    case.tensors.update(items)


def _is_companion(case: Case, name: str, drafter: Drafter) -> bool:
    """Whether the tensor is none of the drafter's own but goes with one that is."""
    if name == "mask_hidden":
        blocks = drafter.num_aux_hidden_states * drafter.target_hidden_size
        return prod(case.tensors[name].shape) == blocks
    if is_scale(name):
        base = name.rpartition(".")[0]
        return any(f"{base}.{part}" in case.tensors for part in ("weight", "weight_packed")) or base.endswith("attn")
    return False


def _has_scale(case: Case, name: str) -> bool:
    base = name.removesuffix("weight")
    return any(is_scale(other) and other.startswith(base) for other in case.tensors)
