"""Who wrote this checkpoint: every format's signatures are tried, and what matched is the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UnusableInput
from eaglehub.formats.config_paths import MISSING, lookup
from eaglehub.formats.names import match
from eaglehub.formats.spec import FormatSpec, Signature, pick_format, readable_formats

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from eaglehub.checkpoint import Checkpoint

_STRENGTH = {"stamp": 2, "layout": 1}


@dataclass(frozen=True, slots=True)
class Detection:
    """The format and why it was chosen, one line a fact."""

    spec: FormatSpec
    evidence: tuple[str, ...]


def detect_format(checkpoint: Checkpoint, forced: str | None = None) -> Detection:
    """The checkpoint's format.

    Args:
        checkpoint: what to look at; only the config and tensor names are read.
        forced: the format named by the user, which ends the question.

    Raises:
        UnusableInput: no format fits, or several do equally well.
        UsageProblem: `forced` is not a format.
    """
    if forced is not None:
        return Detection(pick_format(readable_formats(), forced, "--from"), ("named with --from",))
    matches = [found for spec in readable_formats().values() if (found := _match(spec, checkpoint))]
    best = max((strength for strength, _ in matches), default=0)
    candidates = [detection for strength, detection in matches if strength == best]
    if len(candidates) == 1:
        return candidates[0]
    known = ", ".join(readable_formats())
    if not candidates:
        names = ", ".join(sorted({name.split(".")[0] for name in checkpoint.tensors})[:8])
        facts = f"architectures {checkpoint.config.get('architectures')}, tensors {names}"
        raise UnusableInput(
            f"no EAGLE-3 drafter layout fits ({facts})",
            where=checkpoint.name,
            fix=f"name it with --from: {known}",
            code="EH109",
        )
    ties = "; ".join(f"{d.spec.id}: {', '.join(d.evidence)}" for d in candidates)
    raise UnusableInput(
        f"several layouts fit equally ({ties})", where=checkpoint.name, fix="name one with --from", code="EH109"
    )


def _match(spec: FormatSpec, checkpoint: Checkpoint) -> tuple[int, Detection] | None:
    """The strongest signature of `spec` that holds, with its evidence."""
    found = [
        (_STRENGTH[signature.strength], Detection(spec, tuple(evidence)))
        for signature in spec.detect
        if (evidence := _evidence(signature, checkpoint.config, checkpoint.tensors, checkpoint.metadata)) is not None
    ]
    return max(found, key=lambda pair: pair[0], default=None)


def _evidence(
    signature: Signature, config: Mapping[str, Any], tensors: Iterable[str], metadata: Mapping[str, str]
) -> list[str] | None:
    """What spoke for the signature, or None when one of its conditions fails."""
    evidence = []
    for path, wanted in signature.config.items():
        value = lookup(config, path)
        value = value[0] if path == "architectures" and isinstance(value, list) and value else value
        if value is MISSING or (wanted is not None and value not in (wanted if isinstance(wanted, list) else [wanted])):
            return None
        evidence.append(f"config {path}" if wanted is None or isinstance(value, dict) else f"config {path} = {value}")
    for pattern in signature.tensors:
        hit = next((name for name in tensors if match(pattern, name) is not None), None)
        if hit is None:
            return None
        evidence.append(f"tensor {hit}")
    if signature.metadata:
        if signature.metadata not in metadata:
            return None
        evidence.append(f"safetensors metadata {signature.metadata}")
    if any(lookup(config, path) is not MISSING for path in signature.without_config):
        return None
    if any(match(pattern, name) is not None for pattern in signature.without_tensors for name in tensors):
        return None
    return evidence + [f"no tensor {pattern}" for pattern in signature.without_tensors]
