"""RoPE in both spellings: `rope_theta` with `rope_scaling` (transformers 4) and `rope_parameters` (transformers 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eaglehub.reading.case import Case

DEFAULT_BASE = 10000.0
_KEY = "rope_theta"


def read_rope(case: Case) -> dict[str, Any]:
    """`rope_theta` and `rope_scaling` (None for plain RoPE)."""
    parameters = _parameters(case)
    scaling = _scaling(case, parameters)
    theta = _theta(case, parameters)
    _warn_ignored_base(case, theta, scaling)
    if case.target and case.target.rope_theta not in (None, theta) and case.answers.rope_theta is None:
        case.journal.note(
            "EH605",
            f"RoPE base {theta:g} differs from the target's {case.target.rope_theta:g}",
            where=f"config.json: {_KEY}",
        )
    return {"rope_theta": theta, "rope_scaling": scaling}


def _parameters(case: Case) -> Mapping[str, Any]:
    value = case.config.get("rope_parameters") or {}
    if isinstance(value, Mapping):
        # Some targets have a set for each kind of attention; a drafter's layers attend to everything.
        nested = value.get("full_attention", value)
        if isinstance(nested, Mapping):
            return nested
    case.journal.error("EH201", f"rope_parameters is {value!r}, not an object", where="config.json: rope_parameters")
    return {}


def _theta(case: Case, parameters: Mapping[str, Any]) -> float:
    flat = case.typed(_KEY, float)
    nested = case.typed(_KEY, float, parameters)
    if case.answers.rope_theta is not None:
        case.journal.resolve(
            "rope base", case.answers.rope_theta, "option", f"--rope-theta, the file says {flat or nested}"
        )
        case.journal.reasons[_KEY] = "--rope-theta"
        return case.answers.rope_theta
    if flat is not None and nested is not None and flat != nested:
        case.journal.error(
            "EH203",
            f"rope_theta is {flat:g} at the top level and {nested:g} in rope_parameters",
            where=f"config.json: {_KEY}",
            fix="pass --rope-theta",
        )
    case.journal.reasons.setdefault(_KEY, "from rope_parameters" if nested is not None else "the default, written out")
    if flat is not None:
        return float(flat)
    return float(nested) if nested is not None else DEFAULT_BASE


def _scaling(case: Case, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    flat = case.config.get("rope_scaling")
    if flat is not None and not isinstance(flat, Mapping):
        case.journal.error("EH201", f"rope_scaling is {flat!r}, not an object", where="config.json: rope_scaling")
        return None
    nested = {key: value for key, value in parameters.items() if key != _KEY}
    spellings = [scaling for scaling in (_meaningful(flat), _meaningful(nested)) if scaling]
    if len(spellings) == 2 and _normal(spellings[0]) != _normal(spellings[1]):
        case.journal.error("EH203", "rope_scaling and rope_parameters disagree", where="config.json: rope_scaling")
    return spellings[0] if spellings else None


def _meaningful(scaling: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """None for what amounts to plain RoPE."""
    if not scaling or (
        set(scaling) <= {"rope_type", "type", _KEY}
        and scaling.get("rope_type", scaling.get("type")) in (None, "default")
    ):
        return None
    return dict(scaling)


def _normal(scaling: Mapping[str, Any]) -> dict[str, Any]:
    """With the old `type` key under its new name and without the base, for comparison."""
    normal = {key: value for key, value in scaling.items() if key not in ("type", _KEY)}
    return normal | {"rope_type": scaling.get("rope_type", scaling.get("type"))}


def _warn_ignored_base(case: Case, theta: float, scaling: Mapping[str, Any] | None) -> None:
    """Producers that trained with another base than the config says; kept as declared unless told."""
    trained = case.spec.rope.get("trained_base")
    mrope = bool(scaling) and ("mrope_section" in (scaling or {}))
    if trained is None or theta == trained or mrope or case.answers.rope_theta is not None:
        return
    message = f"RoPE base {theta:g} kept as declared, but {case.spec.rope['why']}"
    fix = f"try --rope-theta {trained:g} if acceptance is low"
    (case.journal.note if case.spec.rope.get("quiet") else case.journal.warn)(
        "EH207", message, f"config.json: {_KEY}", fix
    )
    case.journal.resolve("rope base", theta, "producer", message)
