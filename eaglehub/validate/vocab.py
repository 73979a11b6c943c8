"""EH4xx: the map from draft ids to target ids. Reading the drafter checks all of these."""

from __future__ import annotations

from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Need, Rule

_SHAPES = (Need.TENSORS, Need.FORMAT)
_VALUES = (*_SHAPES, Need.VALUES)

RULES = (
    Rule(
        code="EH401",
        title="d2t is missing although the draft vocabulary is pruned",
        severity=Severity.ERROR,
        why="Draft id i is then taken for target id i. The server is healthy and nearly nothing is accepted.",
        fix="export again with d2t; Megatron's export and eagle_meta.pt lose it",
        reports=("NVIDIA-NeMo/Automodel#2447", "vllm-project/vllm#18909"),
        needs=_SHAPES,
    ),
    Rule(
        code="EH402",
        title="d2t reaches outside the vocabulary",
        severity=Severity.ERROR,
        why="The engine asserts on the device, or writes logits where no token is. Often the map of another target.",
        fix="rebuild the map for this target",
        reports=(
            "ggml-org/llama.cpp#18039",
            "mobilint/mblt-model-zoo#110",
            "Tencent/AngelSlim#16",
            "sgl-project/SpecForge#602",
        ),
        needs=_VALUES,
    ),
    Rule(
        code="EH403",
        title="d2t maps two draft ids to one target id",
        severity=Severity.ERROR,
        why="One overwrites the other's logits, so a part of the draft vocabulary can never be proposed.",
        fix="rebuild the map",
        reports=("ggml-org/llama.cpp#18039",),
        needs=_VALUES,
    ),
    Rule(
        code="EH404",
        title="d2t is all zero",
        severity=Severity.ERROR,
        why="Trainers initialise the buffer with zeros: left so, only the first target ids can be drafted. Losses look"
        " fine.",
        fix="rebuild the map from the training data",
        reports=("verl-project/verl-SpeCo#66", "SafeAILab/EAGLE#222"),
        needs=_VALUES,
    ),
    Rule(
        code="EH405",
        title="t2d contradicts d2t",
        severity=Severity.ERROR,
        why="The two halves of one map come from different runs. Engines that read t2d draft other tokens than those "
        "that read d2t.",
        fix="rebuild both from the same token counts",
        reports=("SafeAILab/EAGLE#248", "sgl-project/SpecForge#76", "sgl-project/SpecForge#602"),
        needs=_VALUES,
    ),
    Rule(
        code="EH406",
        title="d2t holds target ids in place of offsets",
        severity=Severity.ERROR,
        why="vLLM and SGLang add the draft id to each entry. Absolute ids then mean other tokens, or none.",
        fix="eaglehub convert writes offsets",
        reports=("ggml-org/llama.cpp#18039", "mobilint/mblt-model-zoo#110"),
        needs=_VALUES,
        mended=True,
    ),
    Rule(
        code="EH407",
        title="lm_head was pruned with offsets in place of ids",
        severity=Severity.ERROR,
        why="TorchSpec's pruning indexed the head with d2t itself: rows repeat wherever an offset does, and the right "
        "ones are gone.",
        fix="export again from the unpruned drafter",
        reports=("lightseekorg/TorchSpec#38",),
        needs=(*_SHAPES, Need.ALL_VALUES),
    ),
    Rule(
        code="EH408",
        title="d2t and lm_head have different lengths",
        severity=Severity.ERROR,
        why="Each row of the head needs its target id; the map belongs to another export.",
        fix="export head and map together",
        reports=("sgl-project/SpecForge#76", "vllm-project/speculators#1081", "SafeAILab/EAGLE#249"),
        needs=_SHAPES,
    ),
    Rule(
        code="EH409",
        title="d2t on a full draft vocabulary",
        severity=Severity.ERROR,
        why="vLLM builds no such parameter when the draft vocabulary is the target's, and stops at the unknown name.",
        fix="eaglehub convert leaves it out",
        reports=("pytorch/executorch#20149",),
        needs=(*_SHAPES, Need.ENGINE),
        mended=True,
    ),
    Rule(
        code="EH410",
        title="d2t is not stored as integers",
        severity=Severity.WARNING,
        why="Engines cast it without a look; a 16-bit float cannot even hold the ids of a vocabulary beyond 2048 "
        "exactly.",
        fix="eaglehub convert writes int64",
        reports=("mobilint/mblt-model-zoo#110",),
        needs=_SHAPES,
        mended=True,
    ),
)

CHECKS: tuple[Check, ...] = ()
