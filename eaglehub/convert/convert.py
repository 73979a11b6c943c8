"""Conversion in two steps: a plan on metadata alone, then bytes, moved once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import write_checkpoint
from eaglehub.convert.layout import inexpressible, layout_config, layout_reasons, layout_tensors
from eaglehub.convert.provenance import PROVENANCE_FILE, provenance
from eaglehub.drafter.native import REASONS
from eaglehub.drafter.tensors import FLOATS, is_scale
from eaglehub.errors import EaglehubError
from eaglehub.formats.spec import pick_format, writable_formats
from eaglehub.plan.operations import Cast
from eaglehub.plan.plan import Dropped, Plan, TensorStep, config_edits
from eaglehub.reading import Answers, Reading, read_drafter
from eaglehub.reading.values import ValueScan
from eaglehub.report.findings import Finding, Severity, has_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import numpy as np

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.target import Target
    from eaglehub.formats.spec import FormatSpec

# Git's own, which every repository of the Hub has and makes anew.
_OF_THE_REPOSITORY = ".gitattributes"
_AGAIN = {"t2d": "checked against d2t", "d2t": "identity on a full vocabulary"}
_COMPANION = re.compile(
    r"(tokenizer|special_tokens_map|added_tokens|vocab|merges|chat_template|generation_config|preprocessor_config"
    r"|hf_quant_config)[\w.-]*\.(json|txt|jinja|model|tiktoken)|.*\.(jinja|model|tiktoken|md)|(LICEN[CS]E|NOTICE|USE_POLICY).*"
)


class Refused(EaglehubError):
    """What was about to be written is not sound; nothing was written."""

    exit_code = 1

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(
            "; ".join(f"{finding.code} {finding.message}" for finding in findings), fix="nothing was written"
        )

    def refusal(self, conversion: Conversion) -> Conversion:
        """The conversion with what was found."""
        return replace(conversion, findings=(*conversion.findings, *self.findings))


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

    @property
    def nbytes(self) -> int:
        """Of the weights that are to be written; 0 without a plan."""
        return sum(step.output(self.checkpoint).nbytes for step in self.plan.steps) if self.plan else 0


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
    config = layout_config(reading.drafter, spec, checkpoint.config, target, findings)
    steps = layout_tensors(reading, reading.drafter, spec)
    if dtype:
        steps = [_cast(step, dtype) for step in steps]
        config["torch_dtype"] = _torch_name(dtype)
    files, left = _companions(checkpoint)
    plan = Plan(
        source=reading.detection.spec.id,
        layout=spec.id,
        steps=tuple(steps),
        dropped=(*reading.dropped, *_unused(reading, steps), *left),
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
    approve: Callable[[Path], Sequence[Finding]] | None = None,
    record: Mapping[str, Any] | None = None,
) -> None:
    """Write the planned output: weights, config, companions and `eaglehub.json`, all or nothing.

    Args:
        conversion: one that has a plan.
        destination: folder to make.
        force: replace an existing drafter folder.
        max_shard_size: bytes; more shards than one when the weights exceed it.
        progress: called with the number of bytes written since the last call.
        approve: looks at the finished folder before it becomes the destination; an error that it returns refuses it.
        record: further fields of `eaglehub.json`.

    Raises:
        Refused: a weight holds NaN or infinity or is constant, or `approve` found an error; nothing is written.
        UsageProblem: the destination exists or is the source.
        EnvironmentProblem: the disk is full or not writable.
    """
    plan, checkpoint = conversion.plan, conversion.checkpoint
    if plan is None:
        raise ValueError("a conversion without a plan cannot be executed")
    # By the source's names, which is where somebody would look.
    scans = {step.name: ValueScan(step.source or step.name, step.shape) for step in plan.steps if step.source}

    def look(name: str, block: np.ndarray) -> None:
        if scan := scans.get(name):
            scan.see(block)
            if scan.broken:
                _refuse_values([scan])

    files: dict[str, bytes | Path] = {name: checkpoint.path_of(name) for name in plan.files}
    # A source that is already as it should be keeps its config's bytes and its own provenance.
    keep = not plan.changes
    files["config.json"] = checkpoint.config_bytes if keep else encode_json(plan.config)
    keep_provenance = keep and PROVENANCE_FILE in checkpoint.other_files
    if keep_provenance:
        files[PROVENANCE_FILE] = checkpoint.path_of(PROVENANCE_FILE)
    with checkpoint.hashing() as hashes:

        def late_files() -> dict[str, bytes]:
            _refuse_values(scans.values())
            if keep_provenance:
                return {}
            return {PROVENANCE_FILE: encode_json(provenance(conversion, hashes()) | dict(record or {}))}

        write_checkpoint(
            destination,
            [step.output(checkpoint) for step in _in_source_order(plan.steps, checkpoint)],
            files,
            force=force,
            max_shard_size=max_shard_size,
            late_files=late_files,
            watch=look,
            progress=progress,
            approve=lambda folder: _refuse(approve(folder) if approve else ()),
            protect=[checkpoint.path_of("config.json").parent],
        )


def _refuse_values(scans: Iterable[ValueScan]) -> None:
    faults = {scan.name: fault for scan in scans if (fault := scan.fault())}
    _refuse([Finding(code, Severity.ERROR, message, name) for name, (code, message) in faults.items()])


def _refuse(findings: Sequence[Finding]) -> None:
    if has_errors(findings):
        raise Refused(findings)


def _in_source_order(steps: tuple[TensorStep, ...], checkpoint: Checkpoint) -> list[TensorStep]:
    """So that the source is read once from front to back, and hashed from the same reading."""
    place = {name: index for index, name in enumerate(checkpoint.tensors)}
    return sorted(steps, key=lambda step: place.get(step.source or "", -1))


def encode_json(document: dict[str, Any]) -> bytes:
    """Stable JSON as people like to read it."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _cast(step: TensorStep, dtype: str) -> TensorStep:
    """Scales of quantised weights keep their precision."""
    casts = step.dtype in FLOATS and step.dtype != dtype and not is_scale(step.name)
    return step.then(Cast(dtype)) if casts else step


def _torch_name(dtype: str) -> str:
    return {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}[dtype]


def _unused(reading: Reading, steps: list[TensorStep]) -> list[Dropped]:
    """Source tensors that only say again what others say, where the layout does without."""
    used = {step.source for step in steps}
    return [
        Dropped(str(step.source), f"{_AGAIN.get(name, 'input_layernorm again')}; this layout does without")
        for name, step in reading.companions.items()
        if step.source not in used
    ]


def _companions(checkpoint: Checkpoint) -> tuple[tuple[str, ...], list[Dropped]]:
    """Files that are copied (tokenizer, licence, card) and those that are not, with the reason."""
    files, left = [], []
    for name in checkpoint.other_files:
        if name in (PROVENANCE_FILE, _OF_THE_REPOSITORY):
            continue
        if not is_companion(name):
            left.append(Dropped(name, "not a tokenizer, licence or card; weights and code are never carried along"))
        elif checkpoint.leads_outside(name):
            left.append(Dropped(name, "a link to a file elsewhere"))
        else:
            files.append(name)
    return tuple(files), left


def is_companion(name: str) -> bool:
    """Whether a file beside the weights belongs to them: a tokenizer's, a licence, a card."""
    return _COMPANION.fullmatch(name) is not None
