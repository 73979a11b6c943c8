"""RoPE in both spellings: `rope_theta` with `rope_scaling` (transformers 4) and `rope_parameters` (transformers 5).

Transformers takes `rope_scaling` in place of `rope_parameters` when both are there, and a base inside either before the
one at the top level. Places that disagree are an error here: which one the trainer followed is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.reading.case import Case

DEFAULT_BASE = 10000.0
_KEY = "rope_theta"
_WHERE = f"config.json: {_KEY}"


def read_rope(case: Case) -> dict[str, Any]:
    """`rope_theta` and `rope_scaling` (None for plain RoPE)."""
    scaling: Mapping[str, Any] = case.config.get("rope_scaling", {})
    parameters = _parameters(case)
    theta = _theta(case, {"the top level": case.config, "rope_parameters": parameters, "rope_scaling": scaling})
    kind = _kind(case, scaling, parameters)
    _warn_ignored_base(case, theta, kind)
    if case.target and case.target.rope_theta not in (None, theta) and case.answers.rope_theta is None:
        case.journal.note("EH605", f"RoPE base {theta:g} differs from the target's {case.target.rope_theta:g}", _WHERE)
    return {"rope_theta": theta, "rope_scaling": kind}


def _parameters(case: Case) -> Mapping[str, Any]:
    """Some targets have a set for each kind of attention; a drafter's layers attend to everything."""
    value: Mapping[str, Any] = case.config.get("rope_parameters", {})
    full: Mapping[str, Any] = value.get("full_attention", value)
    if any(isinstance(entry, dict) for key, entry in full.items() if key.endswith("_attention")):
        kinds = ", ".join(value)
        case.journal.error("EH201", f"rope_parameters is for {kinds}, none of it for full attention", _WHERE)
        return {}
    return full


def _theta(case: Case, places: Mapping[str, Mapping[str, Any]]) -> float:
    found = {place: float(holder[_KEY]) for place, holder in places.items() if _KEY in holder}
    said = ", ".join(f"{theta:g} in {place}" for place, theta in found.items())
    if case.answers.rope_theta is not None:
        case.journal.resolve(
            "rope base", case.answers.rope_theta, "option", f"--rope-theta; the file: {said or 'none'}"
        )
        case.journal.reasons[_KEY] = "--rope-theta"
        return case.answers.rope_theta
    if len(set(found.values())) > 1:
        case.journal.error("EH203", f"rope_theta is {said}", _WHERE, fix="pass --rope-theta")
    reason = f"from {', '.join(found)}" if found else "the default, written out"
    case.journal.reasons.setdefault(_KEY, reason)
    return next(iter(found.values()), DEFAULT_BASE)


def _kind(case: Case, scaling: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is not plain RoPE about it, without the base."""
    spellings = [_normal(holder) for holder in (scaling, parameters) if set(holder) - {_KEY}]
    if len(spellings) == 2 and spellings[0] != spellings[1]:
        case.journal.error("EH203", "rope_scaling and rope_parameters disagree", where="config.json: rope_scaling")
    kind = {key: value for key, value in (scaling if set(scaling) - {_KEY} else parameters).items() if key != _KEY}
    return kind if spellings and spellings[0] != {"rope_type": "default"} else None


def _normal(holder: Mapping[str, Any]) -> dict[str, Any]:
    """With the old `type` key under its new name and without the base, for comparison."""
    normal = {key: value for key, value in holder.items() if key not in ("type", _KEY)}
    return normal | {"rope_type": holder.get("rope_type", holder.get("type")) or "default"}


def _warn_ignored_base(case: Case, theta: float, kind: Mapping[str, Any] | None) -> None:
    """Producers that trained with another base than the config says; kept as declared unless told."""
    trained = case.spec.rope.get("trained_base")
    mrope = kind is not None and "mrope_section" in kind
    if trained is None or theta == trained or mrope or case.answers.rope_theta is not None:
        return
    message = f"RoPE base {theta:g} kept as declared, but {case.spec.rope['why']}"
    report = case.journal.note if case.spec.rope.get("quiet") else case.journal.warn
    report("EH207", message, _WHERE, f"try --rope-theta {trained:g} if acceptance is low")
    case.journal.resolve("rope base", theta, "producer", message)
