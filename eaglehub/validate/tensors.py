"""EH3xx: tensor names, shapes and types against the description. Reading the drafter finds most of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Hit, Need, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.validate.subject import Subject

_FORMAT = (Need.TENSORS, Need.FORMAT)
_DRAFTER = (Need.TENSORS, Need.FORMAT, Need.DRAFTER)
_FLOATS = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}

RULES = (
    Rule(
        code="EH301",
        title="a tensor that has no place in the drafter",
        severity=Severity.ERROR,
        why="Either the engine refuses it or it is dropped in silence, and with it something the drafter was trained "
        "with: an attention sink, an output gate, a bias of fc.",
        fix="export the drafter without it, or use an engine made for it",
        reports=("NVIDIA/TensorRT-LLM#2588", "vllm-project/vllm#12831", "vllm-project/speculators#1114"),
        needs=_FORMAT,
    ),
    Rule(
        code="EH302",
        title="a tensor is missing",
        severity=Severity.ERROR,
        why="vLLM and SGLang do not check an EAGLE-3 drafter for completeness: what is missing stays random, the "
        "server is healthy and the acceptance length is 1.0.",
        fix="export the drafter again; a lm_head of a pruned vocabulary cannot be left out",
        reports=("sgl-project/sglang#27908", "vllm-project/speculators#1114", "vllm-project/vllm#18906"),
        needs=_FORMAT,
    ),
    Rule(
        code="EH303",
        title="a tensor of the wrong shape",
        severity=Severity.ERROR,
        why="The engine stops with an assertion about two sizes, which does not say which of them is wrong.",
        fix="export the drafter again, or correct the config",
        reports=("SafeAILab/EAGLE#249", "vllm-project/vllm#19174", "sgl-project/sglang#8163"),
        needs=_FORMAT,
    ),
    Rule(
        code="EH304",
        title="one tensor under two names",
        severity=Severity.ERROR,
        why="Both names mean the same weight; which one wins depends on the order of loading.",
        fix="remove one of them",
        needs=_FORMAT,
    ),
    Rule(
        code="EH305",
        title="a weight that is not a floating-point number",
        severity=Severity.ERROR,
        why="Integers without scales beside them are not a quantised weight but a mistake of the exporter; engines "
        "cast them and serve noise.",
        fix="export the weight as bfloat16 or float16",
        needs=_DRAFTER,
    ),
    Rule(
        code="EH306",
        title="no embedding, and the target's does not fit",
        severity=Severity.ERROR,
        why="A drafter without embed_tokens shares the target's, which is impossible when their hidden sizes differ.",
        fix="export the drafter with its own embed_tokens",
        reports=("vllm-project/vllm#18906", "vllm-project/vllm#19174", "vllm-project/vllm#38073"),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH307",
        title="torch_dtype is not the weights' own",
        severity=Severity.WARNING,
        why="SGLang and transformers load in the declared type: float16 weights read as bfloat16 lose precision, and a"
        " type other than the target's ends in a matrix product of two types.",
        fix="eaglehub convert writes the weights' own type",
        reports=("sgl-project/sglang#25894", "sgl-project/sglang#3824", "sgl-project/SpecForge#348"),
        needs=_DRAFTER,
    ),
)


def _no_embedding(subject: Subject) -> Iterator[Hit]:
    drafter = subject.drafter
    if not drafter.embedding and drafter.hidden_size != drafter.target_hidden_size:
        yield Hit(
            "EH306",
            f"embed_tokens is missing, and the target's is {drafter.target_hidden_size} wide, the drafter "
            f"{drafter.hidden_size}",
            where="embed_tokens.weight",
        )


def _declared_dtype(subject: Subject) -> Iterator[Hit]:
    declared = subject.config.get("torch_dtype") or subject.config.get("dtype")
    found = _FLOATS[subject.drafter.dtype]
    if declared not in (None, "auto", found) and not subject.drafter.quantized:
        yield Hit("EH307", f"torch_dtype is {declared!r}, the weights are {found}", where="config.json: torch_dtype")


CHECKS = (Check(_no_embedding, _DRAFTER), Check(_declared_dtype, _DRAFTER))
