"""EH5xx: the numbers themselves, read once in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Hit, Need, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.validate.subject import Subject

# Reading one tensor while another is looked at; each thread holds a few blocks of 4 MiB.
_THREADS = 2
_NEEDS = (Need.TENSORS, Need.ALL_VALUES)

RULES = (
    Rule(
        code="EH501",
        title="NaN or infinity in a weight",
        severity=Severity.ERROR,
        why="Every draft is then the same token. A training run that overflowed float16 leaves such weights, and "
        "converters pass them on.",
        fix="take an earlier checkpoint, or train in bfloat16",
        reports=("SafeAILab/EAGLE#69", "sgl-project/SpecForge#104"),
        needs=_NEEDS,
    ),
    Rule(
        code="EH502",
        title="a weight of zeros",
        severity=Severity.ERROR,
        why="A buffer that was allocated and never filled. vLLM keeps an embed_tokens of zeros, because it differs "
        "from the target's.",
        fix="export again; leave embed_tokens out to share the target's",
        reports=("lightseekorg/TorchSpec#38",),
        needs=_NEEDS,
    ),
    Rule(
        code="EH503",
        title="a matrix whose elements are all the same",
        severity=Severity.ERROR,
        why="No training leaves a matrix constant; it was initialised and not loaded.",
        fix="export again",
        reports=("vllm-project/speculators#1114",),
        needs=_NEEDS,
    ),
)


def _values(subject: Subject) -> Iterator[Hit]:
    from concurrent.futures import ThreadPoolExecutor

    checkpoint = subject.open
    with ThreadPoolExecutor(_THREADS) as pool:
        # Large tensors first, so that the threads end together.
        names = sorted(checkpoint.tensors, key=lambda name: -checkpoint.tensors[name].nbytes)
        for hit in pool.map(lambda name: _look(checkpoint, name), names):
            if hit:
                yield hit


def _look(checkpoint: Checkpoint, name: str) -> Hit | None:
    """What is wrong with one tensor's values."""
    from eaglehub.reading.values import ValueScan

    scan = ValueScan(name, checkpoint.tensors[name].shape)
    for block in checkpoint.chunks(name):
        scan.see(block)
        if scan.broken:
            break
    fault = scan.fault()
    return Hit(*fault, where=name) if fault else None


CHECKS = (Check(_values, _NEEDS),)
