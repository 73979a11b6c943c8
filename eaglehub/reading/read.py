"""Reading a drafter: from a checkpoint of any producer to the canonical description, or to what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.drafter.drafter import Drafter
from eaglehub.drafter.tensors import is_scale
from eaglehub.formats.detect import Detection, detect_format
from eaglehub.formats.names import Drop
from eaglehub.plan.operations import PermuteBlocks
from eaglehub.plan.plan import Dropped, TensorStep
from eaglehub.reading.case import Case
from eaglehub.reading.config_values import check_values
from eaglehub.reading.flags import read_flags
from eaglehub.reading.journal import Answers, Journal, Resolution
from eaglehub.reading.layer import read_layer
from eaglehub.reading.layer_ids import resolve_layer_ids
from eaglehub.reading.rope import read_rope
from eaglehub.reading.scrub import flatten, remaining_keys
from eaglehub.reading.sizes import solve_sizes
from eaglehub.reading.tensors import compare_tensors, complete, part_twin_norms, well_formed
from eaglehub.reading.vocabulary import read_vocabulary_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.target import Target
    from eaglehub.report.findings import Finding


@dataclass(frozen=True, slots=True)
class Reading:
    """What a checkpoint says.

    Attributes:
        detection: the format and its evidence.
        drafter: the canonical description; None when the findings say why there is none.
        sketch: the same as far as errors allow it, for further checks; None when the sizes cannot be told.
        tensors: canonical name to the step that makes it from the source.
        companions: tensors that only say again what others say, by canonical name; for layouts that want them.
        dropped: source tensors without a place in the canonical form, with the reason.
        findings: what was seen on the way; an error means it must not be served.
        resolutions: questions the checkpoint left open, and who answered them.
        reasons: why a config key changes, by dotted path.
    """

    detection: Detection
    drafter: Drafter | None
    sketch: Drafter | None
    tensors: dict[str, TensorStep]
    companions: dict[str, TensorStep]
    dropped: tuple[Dropped, ...]
    findings: tuple[Finding, ...]
    resolutions: tuple[Resolution, ...]
    reasons: Mapping[str, str]


def read_drafter(
    checkpoint: Checkpoint,
    *,
    forced_format: str | None = None,
    answers: Answers | None = None,
    target: Target | None = None,
    values: bool = True,
) -> Reading:
    """Read a checkpoint; only the header, the config and small tensors are looked at.

    Args:
        checkpoint: of any known producer.
        forced_format: a format id that ends detection.
        answers: the user's answers to what checkpoints leave open.
        target: fills and checks what needs the target.
        values: whether small tensors may be looked into, and the start of a large one where it is at hand; without, the
            headers and the config are all that is read.

    Raises:
        UnusableInput: no format fits, or several do.
        UsageProblem: an answer contradicts what the source says for certain.
    """
    detection = detect_format(checkpoint, forced_format)
    journal = Journal()
    config = flatten(checkpoint.config, detection.spec, journal)
    check_values(config, journal)
    case = Case(checkpoint, detection.spec, config, {}, answers or Answers(), target, journal, values)
    dropped = _map_names(case)
    part_twin_norms(case)
    sizes = solve_sizes(case) if well_formed(case) else None
    drafter = _describe(case, sizes) if sizes else None
    if drafter:
        complete(case, drafter)
        compare_tensors(case, drafter)
    return Reading(
        detection=detection,
        drafter=None if journal.errors else drafter,
        sketch=drafter,
        tensors=case.tensors,
        companions=case.companions,
        dropped=tuple(dropped),
        findings=tuple(journal.findings),
        resolutions=tuple(journal.resolutions),
        reasons=journal.reasons,
    )


def _map_names(case: Case) -> list[Dropped]:
    """Every source tensor under its canonical name in `case.tensors`, or dropped with a reason, or an error."""
    dropped = []
    for name, info in case.checkpoint.tensors.items():
        canonical = case.spec.canonical_name(name)
        if isinstance(canonical, Drop):
            dropped.append(Dropped(name, canonical.reason))
        elif canonical is None:
            case.journal.error("EH301", f"{case.spec.title} has no tensor {name}", where=name)
        elif canonical in case.tensors:
            other = case.tensors[canonical].source
            case.journal.error("EH304", f"{name} and {other} are the same tensor, {canonical}", where=name)
        else:
            case.tensors[canonical] = TensorStep(canonical, name, info.dtype, info.shape)
    return dropped


def _describe(case: Case, sizes: Mapping[str, Any]) -> Drafter:
    """The description, with the tensors put in canonical order and form on the way."""
    flags = read_flags(case)
    rope = read_rope(case)
    ids = _read_ids(case, sizes["num_aux_hidden_states"])
    read_vocabulary_map(case, sizes["vocab_size"], sizes["draft_vocab_size"])
    quantized = any(is_scale(name) for name in case.tensors)
    rest: dict[str, Any] = {
        "aux_layer_ids": tuple(ids) if ids else None,
        "quantized": quantized,
        "extra": remaining_keys(case, quantized, sizes["num_hidden_layers"]),
    }
    return Drafter(**(rest | read_layer(case) | rope | flags | dict(sizes)))


def _read_ids(case: Case, num_aux: int) -> list[int] | None:
    if num_aux:
        return _sort_aux_blocks(case, resolve_layer_ids(case, num_aux))
    case.journal.warn(
        "EH709",
        "there is no fc and use_aux_hidden_state is false: vLLM's V2 runner captures aux states all the same and fails",
        where="config.json: eagle_config.use_aux_hidden_state",
        fix="serve it with vLLM's V1 runner",
    )
    return None


def _sort_aux_blocks(case: Case, ids: list[int] | None) -> list[int] | None:
    """Ascending ids, with everything that has one block an aux state reordered along."""
    if ids is None or ids == sorted(ids) or len(set(ids)) != len(ids):
        return ids
    order = tuple(sorted(range(len(ids)), key=ids.__getitem__))
    for name in ("fc.weight", "input_norm.weight", "mask_hidden"):
        if name in case.tensors:
            case.tensors[name] = case.tensors[name].then(PermuteBlocks(order))
    norms = {f"fc_norm.{new}.weight": case.tensors.get(f"fc_norm.{old}.weight") for new, old in enumerate(order)}
    case.tensors.update({name: step.named(name) for name, step in norms.items() if step})
    case.journal.note(
        "EH707",
        f"aux layer ids {ids} are not ascending, as engines capture: they and fc's column blocks need sorting together",
        "fc.weight",
    )
    return sorted(ids)
