"""Aux layer ids: from whatever a checkpoint says to the IN convention, ascending, or a question.

IN id k is the residual stream that enters layer k (id 0 the embedding, id L the last layer's output before the final
norm); an OUT id k is the output of layer k, that is IN id k + 1. vLLM reads IN ids at the config's top level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.drafter.native import TOP_LEVEL
from eaglehub.errors import UsageProblem
from eaglehub.formats.config_paths import lookup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.drafter.target import Target
    from eaglehub.formats.spec import LayerIds
    from eaglehub.reading.case import Case

NESTED = f"eagle_config.{TOP_LEVEL}"
# Read by vLLM's V2 runner as it stands.
V2_NESTED = "eagle_config.layer_ids"
_QUESTION = "aux layer id convention"


def declared_ids(case: Case) -> tuple[list[Any] | None, str]:
    """The raw list and where it comes from: an option, the top level or the nested place."""
    if case.answers.aux_layer_ids:
        return list(case.answers.aux_layer_ids), "--aux-layer-ids"
    for path in (TOP_LEVEL, case.spec.layer_ids.nested or NESTED, V2_NESTED):
        value = lookup(case.config, path)
        if isinstance(value, list) and value:
            return value, path
    return None, ""


def resolve_layer_ids(case: Case, num_aux: int) -> list[int] | None:
    """The ids in the IN convention and the source's order (that of fc's column blocks), or None when unknown.

    Raises:
        UsageProblem: a convention was given and there are no ids.
    """
    raw, place = declared_ids(case)
    if raw is None:
        if case.answers.aux_id_convention:
            raise UsageProblem("there are no layer ids that could have a convention", where="--aux-id-convention")
        return _absent(case, num_aux)
    if not all(type(value) is int for value in raw):
        case.journal.error("EH705", f"aux layer ids {raw} are not integers", where=place)
        return None
    convention = _convention(case, raw, place)
    if convention is None:
        return None
    ids = [value + 1 for value in raw] if convention == "out" else list(raw)
    _check(case, ids, raw, place, num_aux)
    _compare_nested(case, ids, place)
    reason = f"{raw} of {place} in the {convention.upper()} convention"
    case.journal.reasons[TOP_LEVEL] = f"{reason}; vLLM reads IN ids at the top level"
    for nested in (NESTED, case.spec.layer_ids.nested or NESTED):
        case.journal.reasons[nested] = (
            "replaced by the top-level IN ids, the only place that all of vLLM's readers agree on"
        )
    return ids


def _absent(case: Case, num_aux: int) -> list[int] | None:
    """No ids anywhere: the engine's default, written out when the target is known."""
    fix = "pass --aux-layer-ids if it was trained on other layers"
    if num_aux != 3:
        case.journal.error(
            "EH703",
            f"no aux layer ids, and the default of three does not fit the {num_aux} aux states that fc reads",
            where=TOP_LEVEL,
            fix="pass --aux-layer-ids",
        )
        return None
    if case.target is None:
        why = "no aux layer ids: engines fall back to layers 2, L//2, L-3 of the target"
        case.journal.warn(
            "EH703",
            f"{why} ({_habit(case)})",
            TOP_LEVEL,
            f"{fix}, or --target to write the default out",
        )
        case.journal.resolve("aux layer ids", None, "engine default", why)
        return None
    ids = list(case.target.default_aux_layer_ids())
    if not 0 <= ids[0] < ids[1] < ids[2]:
        case.journal.error(
            "EH703",
            f"no aux layer ids, and the default {ids} does not fit a target of {case.target.num_hidden_layers} layers",
            where=TOP_LEVEL,
            fix="pass --aux-layer-ids",
        )
        return None
    why = f"no aux layer ids: the default {ids} for {case.target.num_hidden_layers} layers was written out"
    case.journal.warn("EH703", f"{why} ({_habit(case)})", TOP_LEVEL, fix)
    case.journal.resolve("aux layer ids", ids, "engine default", why)
    case.journal.reasons[TOP_LEVEL] = why
    return ids


def _habit(case: Case) -> str:
    """What is known of a producer that never writes ids."""
    return case.spec.layer_ids.why if not case.spec.layer_ids.nested else f"{case.spec.title} usually writes them"


def _convention(case: Case, raw: list[int], place: str) -> str | None:
    """`in` or `out`, with a resolution for anything that the place alone does not settle."""
    if case.answers.aux_id_convention:
        case.journal.resolve(_QUESTION, case.answers.aux_id_convention, "option", "--aux-id-convention")
        return case.answers.aux_id_convention
    if place == "--aux-layer-ids":
        case.journal.resolve(
            _QUESTION, "in", "option", "--aux-layer-ids without --aux-id-convention is read as vLLM reads ids"
        )
        return "in"
    if place in (TOP_LEVEL, V2_NESTED):
        _suspect_top_level(case, raw)
        return "in"
    rule = case.spec.layer_ids
    if case.target and max(raw) == case.target.num_hidden_layers:
        case.journal.resolve(
            _QUESTION, "in", "target", f"id {max(raw)} can only be the state that leaves the last layer"
        )
        return "in"
    if case.config.get("model_type") == "kimi_k2" and rule.kimi_first_id == raw[0]:
        case.journal.resolve(_QUESTION, "in", "producer", rule.why)
        return "in"
    doubt = _doubt(raw, rule, case.tensors, case.target)
    if doubt:
        case.journal.error(
            "EH704",
            f"nested aux layer ids {raw}: {doubt}",
            where=place,
            fix="say which with --aux-id-convention in (id k enters layer k) or out (id k leaves layer k)",
        )
        return None
    case.journal.resolve(_QUESTION, rule.convention, "producer", rule.why)
    return rule.convention


def _doubt(raw: list[int], rule: LayerIds, tensors: Mapping[str, Any], target: Target | None) -> str:
    """Why the producer's habit cannot be trusted for this file; empty when it can."""
    if not rule.convention:
        return rule.why
    if rule.unsure_with and rule.unsure_with in tensors:
        return rule.why
    if target and rule.convention == "out" and tuple(raw) == target.default_aux_layer_ids():
        return f"{rule.why}, yet they equal the IN default for {target.num_hidden_layers} layers"
    return ""


def _suspect_top_level(case: Case, raw: list[int]) -> None:
    if case.target and tuple(value + 1 for value in raw) == case.target.default_aux_layer_ids():
        case.journal.warn(
            "EH704",
            f"top-level aux layer ids {raw} are one below the default {list(case.target.default_aux_layer_ids())}: "
            "probably OUT ids that somebody copied there",
            where=TOP_LEVEL,
            fix="pass --aux-id-convention out if so",
        )


def _check(case: Case, ids: list[int], raw: list[int], place: str, num_aux: int) -> None:
    if len(set(ids)) != len(ids):
        case.journal.error("EH705", f"aux layer ids {raw} repeat a layer", where=place)
    if min(ids) < 0:
        case.journal.error("EH705", f"aux layer ids {raw} go below the embedding", where=place)
    if len(ids) != num_aux:
        case.journal.error(
            "EH705",
            f"{len(ids)} aux layer ids {raw}, but fc reads {num_aux} aux states",
            where=place,
            fix="pass --target if its hidden size is not the drafter's",
        )
    if case.target and max(ids) > case.target.num_hidden_layers:
        case.journal.error(
            "EH603",
            f"aux layer ids {raw} mean IN {ids}, past the {case.target.num_hidden_layers} layers of {case.target.name}",
            where=place,
        )


def _compare_nested(case: Case, ids: list[int], place: str) -> None:
    """Lists beside the one that was taken must mean the same layers, in the convention of their place."""
    rule = case.spec.layer_ids
    nested = rule.nested or NESTED
    readings = {nested: {"in": [0], "out": [1]}.get(rule.convention, [0, 1]), V2_NESTED: [0]}
    if rule.kimi_first_id is not None:
        readings[nested] = [0, 1]
    for path, shifts in readings.items():
        other = lookup(case.config, path)
        if path == place or not isinstance(other, list) or not all(type(value) is int for value in other):
            continue
        if not any([value + shift for value in other] == ids for shift in shifts):
            settled = case.answers.aux_layer_ids or case.answers.aux_id_convention
            report = case.journal.note if settled else case.journal.error
            report(
                "EH708",
                f"{place} means the states that enter layers {ids}, {path} {other} means others",
                where=path,
                fix="say which layers with --aux-layer-ids, or what the list means with --aux-id-convention",
            )
