"""Conversion in two steps: a plan on metadata alone, then bytes, moved once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import nonfinite, write_checkpoint
from eaglehub.convert.layout import inexpressible, layout_config, layout_reasons, layout_tensors
from eaglehub.convert.provenance import PROVENANCE_FILE, provenance
from eaglehub.drafter.native import REASONS
from eaglehub.errors import EaglehubError
from eaglehub.formats.spec import pick_format, writable_formats
from eaglehub.plan.operations import Cast
from eaglehub.plan.plan import Dropped, Plan, TensorStep, config_edits
from eaglehub.reading import Answers, Reading, read_drafter
from eaglehub.report.findings import Finding, has_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.target import Target
    from eaglehub.formats.spec import FormatSpec

_FLOATS = ("F64", "F32", "BF16", "F16")
# Files that would be wrong or unwelcome beside the converted weights.
_LEFT_BEHIND = {
    ".py": "code is never carried along: a drafter needs none",
    ".pt": "training state or other weights",
    ".bin": "other weights; the converted ones are safetensors",
    ".safetensors": "other weights than those that were read",
    ".index.json": "describes the source's shards",
}


class BrokenValues(EaglehubError):
    """A weight holds NaN or infinity."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Conversion:
    """A planned conversion.

    Attributes:
        checkpoint: the source.
        reading: what it says.
        plan: None when the findings forbid one.
        findings: those of reading and of laying out.
    """

    checkpoint: Checkpoint
    reading: Reading
    plan: Plan | None
    findings: tuple[Finding, ...]


def plan_conversion(
    checkpoint: Checkpoint,
    *,
    layout: str = "vllm",
    forced_format: str | None = None,
    answers: Answers | None = None,
    target: Target | None = None,
    dtype: str | None = None,
) -> Conversion:
    """Plan a conversion; nothing is written and no large tensor is read.

    Args:
        checkpoint: the source.
        layout: id of a format that eaglehub writes.
        forced_format: the source's format id, to end detection.
        answers: the user's answers to what checkpoints leave open.
        target: fills and checks what needs the target.
        dtype: safetensors name of the dtype that all float weights are cast to; None keeps each.

    Raises:
        UnusableInput: the source's format cannot be told.
        UsageProblem: impossible options.
    """
    spec = pick_format(writable_formats(), layout, "--to")
    reading = read_drafter(checkpoint, forced_format=forced_format, answers=answers, target=target)
    return _planned(checkpoint, reading, spec, target, dtype)


def replan(
    conversion: Conversion,
    drafter: Drafter,
    tensors: Mapping[str, TensorStep],
    *,
    dropped: Sequence[Dropped],
    reasons: Mapping[str, str],
    target: Target | None,
) -> Conversion:
    """The conversion of a drafter that is changed on the way.

    Args:
        conversion: one that has a plan.
        drafter: what it becomes.
        tensors: how, by canonical name.
        dropped: source tensors that no tensor is made from any more, with the reason.
        reasons: of config keys that change.
        target: as given to `plan_conversion`.
    """
    if conversion.plan is None:
        raise ValueError("a conversion without a plan cannot be changed")
    reading = replace(
        conversion.reading,
        drafter=drafter,
        tensors=dict(tensors),
        dropped=(*conversion.reading.dropped, *dropped),
        reasons={**conversion.reading.reasons, **reasons},
    )
    return _planned(conversion.checkpoint, reading, writable_formats()[conversion.plan.layout], target, None)


def _planned(
    checkpoint: Checkpoint, reading: Reading, spec: FormatSpec, target: Target | None, dtype: str | None
) -> Conversion:
    findings = list(reading.findings)
    if reading.drafter is None or has_errors(findings):
        return Conversion(checkpoint, reading, None, tuple(findings))
    findings += inexpressible(reading.drafter, spec)
    if has_errors(findings):
        return Conversion(checkpoint, reading, None, tuple(findings))
    config = layout_config(reading.drafter, spec, target, findings)
    steps = layout_tensors(reading.drafter, reading.tensors, spec)
    if dtype:
        steps = [_cast(step, dtype) for step in steps]
        config["torch_dtype"] = _torch_name(dtype)
    files, left = _companions(checkpoint)
    plan = Plan(
        source=reading.detection.spec.id,
        layout=spec.id,
        steps=tuple(steps),
        dropped=(*reading.dropped, *_unused(reading, checkpoint, steps), *left),
        config=config,
        edits=tuple(config_edits(checkpoint.config, config, {**REASONS, **layout_reasons(spec), **reading.reasons})),
        files=files,
    )
    return Conversion(checkpoint, reading, plan if not has_errors(findings) else None, tuple(findings))


def execute(
    conversion: Conversion,
    destination: Path,
    *,
    force: bool = False,
    max_shard_size: int | None = None,
    progress: Callable[[int], None] | None = None,
    record: Mapping[str, Any] | None = None,
) -> None:
    """Write the planned output: weights, config, companions and `eaglehub.json`, all or nothing.

    Args:
        conversion: one that has a plan.
        destination: folder to make.
        force: replace an existing drafter folder.
        max_shard_size: bytes; more shards than one when the weights exceed it.
        progress: called with the number of bytes written since the last call.
        record: further fields of `eaglehub.json`.

    Raises:
        BrokenValues: a weight holds NaN or infinity; nothing is written.
        UsageProblem: the destination exists or is the source.
        EnvironmentProblem: the disk is full or not writable.
    """
    plan, checkpoint = conversion.plan, conversion.checkpoint
    if plan is None:
        raise ValueError("a conversion without a plan cannot be executed")
    sources = {step.name: step.source or step.name for step in plan.steps}

    def refuse_broken(name: str, chunk: np.ndarray) -> None:
        if nonfinite(chunk):
            raise BrokenValues("holds NaN or infinity", where=f"EH501 {sources[name]}", fix="nothing was written")

    files: dict[str, bytes | Path] = {name: checkpoint.path_of(name) for name in plan.files}
    # A source that is already as it should be keeps its config's bytes and its own provenance.
    keep = not plan.changes
    files["config.json"] = checkpoint.config_bytes if keep else encode_json(plan.config)
    keep_provenance = keep and PROVENANCE_FILE in checkpoint.other_files
    if keep_provenance:
        files[PROVENANCE_FILE] = checkpoint.path_of(PROVENANCE_FILE)
    with checkpoint.hashing() as hashes:
        write_checkpoint(
            destination,
            [step.output(checkpoint) for step in _in_source_order(plan.steps, checkpoint)],
            files,
            force=force,
            max_shard_size=max_shard_size,
            late_files=lambda: (
                {} if keep_provenance else {PROVENANCE_FILE: encode_json(provenance(conversion, hashes()))}
            ),
            watch=refuse_broken,
            progress=progress,
            protect=[checkpoint.path_of("config.json").parent],
        )


def _in_source_order(steps: tuple[TensorStep, ...], checkpoint: Checkpoint) -> list[TensorStep]:
    """So that the source is read once from front to back, and hashed from the same reading."""
    place = {name: index for index, name in enumerate(checkpoint.tensors)}
    return sorted(steps, key=lambda step: place.get(step.source or "", -1))


def encode_json(document: dict[str, Any]) -> bytes:
    """Stable JSON as people like to read it."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _cast(step: TensorStep, dtype: str) -> TensorStep:
    return step.then(Cast(dtype)) if step.dtype in _FLOATS and step.dtype != dtype else step


def _torch_name(dtype: str) -> str:
    return {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}[dtype]


def _unused(reading: Reading, checkpoint: Checkpoint, steps: list[TensorStep]) -> list[Dropped]:
    """Source tensors that were read and checked but have no place in this layout: the vocabulary map's other half."""
    used = {step.source for step in steps} | {item.name for item in reading.dropped}
    return [
        Dropped(
            name,
            "checked against d2t; this layout does without"
            if name.endswith("t2d")
            else "identity on a full vocabulary",
        )
        for name in checkpoint.tensors
        if name not in used
    ]


def _companions(checkpoint: Checkpoint) -> tuple[tuple[str, ...], list[Dropped]]:
    """Files that are copied (tokenizer, licence, card) and those that are not, with the reason."""
    left = [
        Dropped(name, reason)
        for name in checkpoint.other_files
        if (reason := next((why for suffix, why in _LEFT_BEHIND.items() if name.endswith(suffix)), None))
    ]
    gone = {item.name for item in left} | {"config.json", PROVENANCE_FILE}
    return tuple(name for name in checkpoint.other_files if name not in gone), left
