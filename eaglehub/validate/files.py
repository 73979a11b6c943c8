"""EH1xx: the folder's files are what they seem and belong together. Opening the checkpoint finds most of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.checkpoint.layout import NOT_WEIGHTS, PICKLE_SUFFIXES, SAFETENSORS
from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Hit, Need, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.validate.subject import Subject

# What the Hugging Face Hub takes as one file.
_HUB_FILE_BYTES = 50 * 10**9

RULES = (
    Rule(
        code="EH101",
        title="not a drafter's folder",
        severity=Severity.ERROR,
        why="There is no readable config.json with weights beside it, so no engine can load anything from it.",
        fix="point to the folder that holds config.json and model.safetensors",
    ),
    Rule(
        code="EH102",
        title="a Git LFS pointer or a web page in place of a file",
        severity=Severity.ERROR,
        why="A clone without Git LFS leaves 135-byte pointers, a gated download a login page. Engines report "
        "HeaderTooLarge or a JSON error and say nothing about the cause.",
        fix="git lfs pull, or download the file again",
        reports=("huggingface/transformers#27923", "hiyouga/LlamaFactory#327", "vllm-project/vllm#57975"),
    ),
    Rule(
        code="EH103",
        title="a weight file that does not hold what its header says",
        severity=Severity.ERROR,
        why="An interrupted download or a bad writer leaves a file that is too short, too long or has gaps.",
        fix="download or export it again",
        reports=("lyogavin/airllm#137", "Comfy-Org/ComfyUI#15602"),
    ),
    Rule(
        code="EH104",
        title="not a safetensors file",
        severity=Severity.ERROR,
        why="The header is not what the format demands; the official library refuses the file too.",
        fix="export it again with the safetensors library",
    ),
    Rule(
        code="EH105",
        title="a JSON file that readers can take differently",
        severity=Severity.ERROR,
        why="Broken JSON stops an engine; a key given twice or NaN is read in one way here and in another there.",
        fix="write the file with a JSON library",
    ),
    Rule(
        code="EH106",
        title="the index and the shards disagree",
        severity=Severity.ERROR,
        why="Engines load what the index names: a missing shard or a tensor that the index leaves out is a weight that"
        " stays random.",
        fix="download the missing shards, or export again",
        reports=("NVIDIA/Model-Optimizer#1417",),
    ),
    Rule(
        code="EH107",
        title="a file too large for the Hub",
        severity=Severity.WARNING,
        why="The Hub refuses single files over 50 GB, after the upload has run for hours.",
        fix="eaglehub convert --max-shard-size 5GB",
        reports=("huggingface/huggingface_hub#2030",),
    ),
    Rule(
        code="EH108",
        title="a pickle that wants to run code, or is damaged",
        severity=Severity.ERROR,
        why="A pickle can run any code when it is loaded. One that holds more than plain tensors is not loaded here.",
        fix="get the weights as safetensors",
        reports=("Dao-AILab/flash-attention#2585", "deepseek-ai/DeepSeek-V3#872"),
    ),
    Rule(
        code="EH109",
        title="no known layout, or several",
        severity=Severity.ERROR,
        why="Names and config fit no producer's layout of an EAGLE-3 drafter, or more than one.",
        fix="name it with --from, see eaglehub formats",
        needs=(Need.TENSORS,),
    ),
    Rule(
        code="EH110",
        title="other weights beside the weights",
        severity=Severity.WARNING,
        why="A converter that wrote into a used folder leaves the old weights beside the new ones. Tools differ in "
        "which they load, and both get published.",
        fix="remove the file that is not meant",
        reports=("vllm-project/speculators#1114",),
        needs=(Need.TENSORS,),
    ),
    Rule(
        code="EH111",
        title="this machine cannot read it",
        severity=Severity.ERROR,
        why="Pickles are read with PyTorch 2.6 or newer, which is not installed, or the system denies access.",
        fix="pip install 'eaglehub[train]'",
    ),
)


def _too_large(subject: Subject) -> Iterator[Hit]:
    for file, size in subject.files.items():
        if size > _HUB_FILE_BYTES:
            yield Hit("EH107", f"{file} has {size / 1e9:.0f} GB, over the Hub's 50 GB", where=file)


def _other_weights(subject: Subject) -> Iterator[Hit]:
    for file in subject.open.other_files:
        if file.endswith((SAFETENSORS, *PICKLE_SUFFIXES)) and file not in NOT_WEIGHTS:
            taken = ", ".join(subject.open.weight_files[:3])
            yield Hit("EH110", f"{file} lies beside {taken}, which engines load", where=file)


CHECKS = (Check(_too_large), Check(_other_weights, (Need.TENSORS,)))
