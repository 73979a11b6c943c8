"""EH6xx: the drafter against its target. Reading the drafter finds those that concern sizes and layer ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import parse_json_object
from eaglehub.checkpoint.folder import LocalFolder
from eaglehub.drafter.shared import EMBEDDING, find_shared
from eaglehub.errors import UnusableInput
from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Hit, Need, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.checkpoint.folder import Folder
    from eaglehub.drafter.target import Target
    from eaglehub.validate.subject import Subject

_NEEDS = (Need.TENSORS, Need.FORMAT, Need.TARGET)
_DRAFTER = (*_NEEDS, Need.DRAFTER)
_ROTATIONS = ("quarot", "spinquant", "rotation", "hadamard")

RULES = (
    Rule(
        code="EH601",
        title="fc reads hidden states of another width than the target's",
        severity=Severity.ERROR,
        why="The engine stops at the first matrix product, or reads a buffer of the wrong size.",
        fix="use the target it was trained for, or state target_hidden_size",
        reports=("sgl-project/sglang#8163", "vllm-project/vllm#38073"),
        needs=(Need.TENSORS, Need.FORMAT),
    ),
    Rule(
        code="EH602",
        title="the vocabulary is not the target's",
        severity=Severity.ERROR,
        why="Draft logits are scattered over the target's vocabulary; another size is an assertion at best and other "
        "tokens at worst. A multimodal target has its vocabulary in text_config, a padded one has rows without "
        "tokens.",
        fix="use the target it was trained for",
        reports=("vllm-project/speculators#188", "vllm-project/speculators#142", "SafeAILab/EAGLE#258"),
        needs=_NEEDS,
    ),
    Rule(
        code="EH603",
        title="aux layer ids beyond the target's layers",
        severity=Severity.ERROR,
        why="A layer that does not exist is never captured, and fc gets fewer states than it reads.",
        fix="use the target it was trained for, or state the convention of the ids",
        reports=("vllm-project/vllm#48259", "sgl-project/sglang#32334"),
        needs=_NEEDS,
    ),
    Rule(
        code="EH604",
        title="another type than the target's",
        severity=Severity.NOTE,
        why="vLLM casts the drafter to the target's type. SGLang has stopped with a product of two types.",
        fix="eaglehub convert --dtype",
        reports=("sgl-project/sglang#25894", "sgl-project/sglang#3431", "sgl-project/SpecForge#348"),
        needs=_NEEDS,
    ),
    Rule(
        code="EH605",
        title="another RoPE base than the target's",
        severity=Severity.NOTE,
        why="A drafter may have its own, but published heads have had the wrong one by accident.",
        fix="compare with how it was trained",
        reports=("sgl-project/SpecForge#265", "sgl-project/SpecForge#270", "vllm-project/vllm-ascend#6612"),
        needs=_NEEDS,
    ),
    Rule(
        code="EH606",
        title="another head size than the target's",
        severity=Severity.WARNING,
        why="Engines lay out one KV cache for both: pages of two sizes waste memory or are refused.",
        fix="train drafters with the target's head_dim",
        reports=("Tencent/AngelSlim#5", "vllm-project/vllm#23740", "vllm-project/vllm#43626"),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH607",
        title="an embedding that is not the target's",
        severity=Severity.WARNING,
        why="vLLM keeps an embed_tokens that differs from the target's. That is right for a trained one; an exporter "
        "that saved a random one has cost most of the acceptance.",
        fix="leave embed_tokens out unless it was trained",
        reports=("lightseekorg/TorchSpec#38", "vllm-project/vllm#28549", "vllm-project/vllm#27737"),
        needs=(*_DRAFTER, Need.ALL_VALUES, Need.TARGET_WEIGHTS),
    ),
    Rule(
        code="EH608",
        title="fewer positions than the target",
        severity=Severity.WARNING,
        why="Engines size the drafter's RoPE cache by max_position_embeddings. vLLM raises it since 0.26; before, and "
        "in SGLang, long prompts crash or are drafted at random. A low value also tells of training on short "
        "texts.",
        fix="eaglehub convert --target raises it",
        reports=(
            "vllm-project/vllm#48894",
            "vllm-project/vllm#23072",
            "sgl-project/SpecForge#249",
            "sgl-project/sglang#6783",
        ),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH609",
        title="the file names another target",
        severity=Severity.WARNING,
        why="A drafter predicts one model's states. On a fine-tuned or merely similar model it accepts much less.",
        fix="use the target it names, or retrain it",
        reports=("SafeAILab/EAGLE#98", "SafeAILab/EAGLE#106", "vllm-project/speculators#616"),
        needs=_NEEDS,
    ),
    Rule(
        code="EH610",
        title="a rotated target whose embedding would be shared",
        severity=Severity.WARNING,
        why="Rotating quantisers change the target's embedding too. A drafter without embed_tokens then reads rotated "
        "ones: acceptance 1.07 instead of 3.09.",
        fix="add the unrotated embed_tokens to the drafter",
        reports=("vllm-project/vllm-ascend#7038",),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH611",
        title="another kind of RoPE than the target's",
        severity=Severity.WARNING,
        why="A converter that drops rope_scaling leaves a drafter right on short prompts and lost on long ones.",
        fix="compare with how it was trained",
        reports=("vllm-project/speculators#574",),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH612",
        title="another chat template than the target's",
        severity=Severity.WARNING,
        why="A drafter predicts the target in the conversations that it was trained on; with another template, a "
        "measured gain fell from 7 % to 2.6 %.",
        fix="train and serve with the target's own template",
        reports=("ROCm/ATOM#609", "NVIDIA-NeMo/Megatron-Bridge#3359", "vllm-project/speculators#690"),
        needs=(Need.TARGET,),
    ),
)


def _target(subject: Subject) -> Target:
    if subject.target is None:
        raise ValueError("this check needs a target")
    return subject.target


def _head_size(subject: Subject) -> Iterator[Hit]:
    text = _target(subject).text
    heads, width = text.get("num_attention_heads"), _target(subject).hidden_size
    wanted = text.get("head_dim") or (width // heads if isinstance(heads, int) and heads > 0 else None)
    found = subject.drafter.head_dim
    if isinstance(wanted, int) and found and found != wanted and "kv_lora_rank" not in text:
        yield Hit("EH606", f"head_dim is {found}, the target's is {wanted}", where="config.json: head_dim")


def _positions(subject: Subject) -> Iterator[Hit]:
    declared, wanted = subject.positions
    if declared < wanted:
        yield Hit(
            "EH608",
            f"max_position_embeddings is {declared or 'missing'}, the target has {wanted}",
            where="config.json: max_position_embeddings",
        )


def _verifier(subject: Subject) -> Iterator[Hit]:
    named = subject.config.get("speculators_config")
    named = named.get("verifier") if isinstance(named, Mapping) else None
    named = named.get("name_or_path") if isinstance(named, Mapping) else None
    target = _target(subject).name
    if isinstance(named, str) and "/" in target and _last(named) != _last(target):
        yield Hit(
            "EH609",
            f"it was trained for {named}, the target is {target}",
            where="config.json: speculators_config.verifier.name_or_path",
        )


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower()


def _rotated(subject: Subject) -> Iterator[Hit]:
    quantization = json.dumps(_target(subject).text.get("quantization_config")).lower()
    rotation = next((word for word in _ROTATIONS if word in quantization), None)
    if rotation and not subject.drafter.embedding:
        yield Hit("EH610", f"embed_tokens is missing, and the target's is rotated ({rotation})", "embed_tokens.weight")


def _rope_kind(subject: Subject) -> Iterator[Hit]:
    wanted, found = _kind(_scaling(_target(subject).text)), _kind(subject.drafter.rope_scaling)
    if wanted != found:
        yield Hit("EH611", f"RoPE is of the kind {found}, the target's {wanted}", where="config.json: rope_scaling")


def _scaling(text: Mapping[str, Any]) -> Mapping[str, Any] | None:
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    return scaling if isinstance(scaling, Mapping) else None


def _kind(scaling: Mapping[str, Any] | None) -> str:
    """The type of RoPE; mrope is plain RoPE over several axes."""
    kind = str((scaling or {}).get("rope_type") or (scaling or {}).get("type") or "default")
    return "default" if kind == "mrope" else kind


def _embedding(subject: Subject) -> Iterator[Hit]:
    import numpy as np

    step, weights = subject.reading.tensors.get(EMBEDDING), subject.target_weights
    if step is None or step.source is None or weights is None:
        return
    try:
        theirs = find_shared(weights, EMBEDDING)
    except UnusableInput:
        return
    if weights.tensors[theirs].shape != step.shape:
        return
    ours = subject.open.chunks(step.source)
    pairs = zip(ours, weights.chunks(theirs), strict=False)
    same_type = weights.tensors[theirs].dtype == step.dtype
    for mine, target in pairs:
        rows = min(len(mine), len(target))
        if not np.array_equal(mine[:rows], target[:rows] if same_type else target[:rows].astype(mine.dtype)):
            yield Hit("EH607", f"{step.source} is not the target's embedding", where=step.source)
            return


def _template(subject: Subject) -> Iterator[Hit]:
    target = _target(subject).folder
    ours, theirs = _chat_template(subject.folder), _chat_template(LocalFolder(target)) if target else ""
    if ours and theirs and ours.split() != theirs.split():
        yield Hit("EH612", "the chat template beside the drafter is not the target's")


def _chat_template(folder: Folder) -> str:
    """The template of a folder, in either place that tokenizers keep it; empty when there is none."""
    files, settings = folder.sizes(), "tokenizer_config.json"
    if "chat_template.jinja" in files:
        return folder.text("chat_template.jinja")
    template = parse_json_object(folder.read(settings), settings).get("chat_template") if settings in files else None
    return template if isinstance(template, str) else ""


CHECKS = (
    Check(_template, (Need.TARGET,)),
    Check(_head_size, _DRAFTER),
    Check(_positions, _DRAFTER),
    Check(_verifier, _NEEDS),
    Check(_rotated, _DRAFTER),
    Check(_rope_kind, _DRAFTER),
    Check(_embedding, (*_DRAFTER, Need.ALL_VALUES, Need.TARGET_WEIGHTS)),
)
