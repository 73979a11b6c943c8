"""Reading a drafter: from a checkpoint of any producer to the canonical description, or to what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from eaglehub.drafter.drafter import Drafter
from eaglehub.drafter.tensors import FLOATS, expected_tensors, is_scale, rank
from eaglehub.formats.detect import Detection, detect_format
from eaglehub.formats.names import Drop
from eaglehub.plan.operations import PermuteBlocks
from eaglehub.plan.plan import Dropped, TensorStep
from eaglehub.reading.case import Case
from eaglehub.reading.config_values import check_values
from eaglehub.reading.flags import read_flags
from eaglehub.reading.journal import Answers, Journal, Resolution
from eaglehub.reading.layer_ids import resolve_layer_ids
from eaglehub.reading.rope import read_rope
from eaglehub.reading.scrub import flatten, remaining_keys
from eaglehub.reading.sizes import solve_sizes
from eaglehub.reading.vocabulary import read_vocabulary_map
from eaglehub.report.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.target import Target
    from eaglehub.report.findings import Finding

# SGLang's name for the later layers' pre-attention norm, which vLLM calls input_layernorm.
_TWIN = re.compile(r"(layers\.[1-9]\d*)\.hidden_norm\.weight")
_MASK_TOKEN_KEYS = ("mask_token_id", "pard_token", "ptd_token_id")


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
        values: whether small tensors may be looked into; without, the headers and the config are all that is read.

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
    _part_twin_norms(case)
    sizes = solve_sizes(case) if _well_formed(case) else None
    drafter = _describe(case, sizes) if sizes else None
    if drafter:
        _complete(case, drafter)
        _compare_tensors(case, drafter)
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


def _part_twin_norms(case: Case) -> None:
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


def _well_formed(case: Case) -> bool:
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


def _describe(case: Case, sizes: Mapping[str, Any]) -> Drafter:
    """The description, with the tensors put in canonical order and form on the way."""
    flags = read_flags(case)
    rope = read_rope(case)
    ids = _read_ids(case, sizes["num_aux_hidden_states"])
    read_vocabulary_map(case, sizes["vocab_size"], sizes["draft_vocab_size"])
    quantized = any(is_scale(name) for name in case.tensors)
    rest: dict[str, Any] = {
        "hidden_act": _silu(case),
        "rms_norm_eps": _eps(case),
        "max_position_embeddings": _positions(case),
        "aux_layer_ids": tuple(ids) if ids else None,
        "parallel_drafting": _drafts_in_parallel(case),
        "mask_token_id": _mask_token(case),
        "quantized": quantized,
        "dtype": _dtype(case),
        "extra": remaining_keys(case, quantized, sizes["num_hidden_layers"]),
    }
    return Drafter(**(rest | rope | flags | dict(sizes)))


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


def _silu(case: Case) -> str:
    activation: str = case.config.get("hidden_act", "silu")
    if activation != "silu":
        case.journal.error(
            "EH204",
            f"hidden_act is {activation!r}; every engine's drafter class has silu only",
            "config.json: hidden_act",
        )
    return activation


def _eps(case: Case) -> float:
    """Transformers' default for llama where the file says nothing."""
    case.journal.reasons.setdefault("rms_norm_eps", "the default, written out")
    return float(case.config.get("rms_norm_eps", 1e-6))


def _positions(case: Case) -> int | None:
    target = case.target
    declared: int | None = case.config.get("max_position_embeddings")
    wanted = target.max_position_embeddings if target else None
    if wanted and (declared or 0) < wanted:
        case.journal.reasons["max_position_embeddings"] = (
            f"raised to {target.name if target else ''}'s: a drafter is served at the target's positions, and older "
            "engines size its RoPE cache by this"
        )
        return wanted
    return declared


def _drafts_in_parallel(case: Case) -> bool:
    """Whether it is a P-EAGLE drafter; one that lost its `mask_hidden` must not pass for a plain one."""
    present = "mask_hidden" in case.tensors
    architectures = case.checkpoint.config.get("architectures")
    declared = (
        any(key in case.config for key in _MASK_TOKEN_KEYS)
        or case.config.get("parallel_drafting") is True
        or case.checkpoint.config.get("speculators_model_type") == "peagle"
        or "peagle" in str(architectures).lower()
    )
    if declared and not present:
        case.journal.error(
            "EH302", "mask_hidden is missing, without which nothing can be drafted in parallel", "mask_hidden"
        )
    return present


def _mask_token(case: Case) -> int | None:
    if "mask_hidden" not in case.tensors:
        return None
    tokens = {key: case.config[key] for key in _MASK_TOKEN_KEYS if key in case.config}
    if len(set(tokens.values())) != 1:
        said = ", ".join(f"{key} {token}" for key, token in tokens.items()) or "none"
        case.journal.error(
            "EH201", f"a parallel drafter needs one mask token, the config names {said}", "config.json: mask_token_id"
        )
    return next(iter(tokens.values()), None)


def _dtype(case: Case) -> str:
    """The dtype of most weights."""
    sizes: dict[str, int] = {}
    for step in case.tensors.values():
        if step.dtype in FLOATS:
            sizes[step.dtype] = sizes.get(step.dtype, 0) + prod(step.shape)
    dtype = max(sizes, key=sizes.__getitem__, default="BF16")
    wanted = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}.get(str(case.target.dtype if case.target else ""))
    if wanted and wanted != dtype:
        case.journal.note(
            "EH604",
            f"weights are {dtype}, the target runs in {wanted}; engines cast",
            fix=f"--dtype {case.target.dtype if case.target else ''}",
        )
    return dtype


def _complete(case: Case, drafter: Drafter) -> None:
    """VLLM's llama drafter builds an output-projection bias with the other attention biases; none is a zero one."""
    if drafter.architecture != "llama" or not drafter.attention_bias:
        return
    for layer in range(drafter.num_hidden_layers):
        name = f"layers.{layer}.self_attn.o_proj.bias"
        if name not in case.tensors and f"layers.{layer}.self_attn.q_proj.bias" in case.tensors:
            reason = "vLLM builds this bias with q, k and v's and would leave it uninitialised"
            case.tensors[name] = TensorStep(name, None, drafter.dtype, (drafter.hidden_size,), reason=reason)


def _compare_tensors(case: Case, drafter: Drafter) -> None:
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
