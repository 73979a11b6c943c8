"""What `eaglehub inspect` reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.report.report import Report
from eaglehub.report.text import escaped, print_findings

if TYPE_CHECKING:
    from rich.console import Console

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.reading import Reading


@dataclass(frozen=True)
class InspectReport(Report):
    """A drafter as it was read; inspecting finds nothing wrong by itself, so the exit code is 0."""

    kind: ClassVar[str] = "inspect"
    checkpoint: Checkpoint
    reading: Reading

    def data(self) -> dict[str, Any]:
        """Facts; `drafter` is null when the findings say why it cannot be told."""
        return {
            "name": self.checkpoint.name,
            "revision": self.checkpoint.revision,
            "format": self.reading.detection.spec.id,
            "evidence": list(self.reading.detection.evidence),
            "drafter": _drafter_data(self.reading.drafter) if self.reading.drafter else None,
            "tensors": {
                "count": len(self.checkpoint.tensors),
                "bytes": sum(info.nbytes for info in self.checkpoint.tensors.values()),
                "parameters": sum(
                    info.size for name, info in self.checkpoint.tensors.items() if not name.endswith(("d2t", "t2d"))
                ),
                "dtypes": dict(Counter(info.dtype for info in self.checkpoint.tensors.values())),
                "files": list(self.checkpoint.weight_files),
            },
            "resolutions": [resolution.to_json() for resolution in self.reading.resolutions],
            "findings": [finding.to_json() for finding in self.reading.findings],
        }

    def render(self, console: Console) -> None:
        """A line a fact."""
        detection = self.reading.detection
        drafter = self.reading.drafter
        revision = {"revision": self.checkpoint.revision} if self.checkpoint.revision else {}
        rows = {
            "drafter": f"{self.checkpoint.name}{f', EAGLE-{drafter.generation}' if drafter else ''}",
            **revision,
            "producer": f"{detection.spec.title} ({detection.spec.id}): {', '.join(detection.evidence)}",
            **(_rows(drafter) if drafter else {}),
            "tensors": self._tensors(),
        }
        for label, value in rows.items():
            console.print(escaped(f"{label:<11} {value}"), soft_wrap=True)
        print_findings(console, self.reading.findings)

    def _tensors(self) -> str:
        facts = self.data()["tensors"]
        dtypes = ", ".join(f"{count} {dtype}" for dtype, count in facts["dtypes"].items())
        return f"{facts['count']} ({dtypes}), {facts['bytes'] / 1e6:.1f} MB in {', '.join(facts['files'])}"


def _drafter_data(drafter: Drafter) -> dict[str, Any]:
    ids = drafter.aux_layer_ids
    return {
        "generation": drafter.generation,
        "architecture": drafter.architecture,
        "hidden_size": drafter.hidden_size,
        "target_hidden_size": drafter.target_hidden_size,
        "vocab_size": drafter.vocab_size,
        "draft_vocab_size": drafter.draft_vocab_size,
        "vocabulary_coverage": drafter.draft_vocab_size / drafter.vocab_size,
        "num_hidden_layers": drafter.num_hidden_layers,
        "num_attention_heads": drafter.num_attention_heads,
        "num_key_value_heads": drafter.num_key_value_heads,
        "head_dim": drafter.head_dim,
        "intermediate_size": drafter.intermediate_size,
        "num_aux_hidden_states": drafter.num_aux_hidden_states,
        "aux_layer_ids": {"in": list(ids), "out": [value - 1 for value in ids]} if ids else None,
        "flags": drafter.flags,
        "rope_theta": drafter.rope_theta,
        "rope_scaling": dict(drafter.rope_scaling) if drafter.rope_scaling else None,
        "max_position_embeddings": drafter.max_position_embeddings,
        "own_embedding": drafter.embedding,
        "own_head": drafter.head,
        "parallel_drafting": drafter.parallel_drafting,
        "quantized": drafter.quantized,
        "dtype": drafter.dtype,
    }


def _rows(drafter: Drafter) -> dict[str, str]:
    data = _drafter_data(drafter)
    ids = data["aux_layer_ids"]
    heads = f"{drafter.num_attention_heads} heads, {drafter.num_key_value_heads} key/value"
    flags = ", ".join(f"{flag} {'yes' if on else 'no'}" for flag, on in data["flags"].items())
    scaling = f", {drafter.rope_scaling}" if drafter.rope_scaling else ""
    coverage = (
        f"{drafter.draft_vocab_size} of the target's {drafter.vocab_size} ids ({data['vocabulary_coverage']:.1%})"
    )
    layers = f"{drafter.num_hidden_layers} {drafter.architecture} layer{'s' * (drafter.num_hidden_layers > 1)}"
    return {
        "layers": f"{layers}, hidden {drafter.hidden_size}, MLP {drafter.intermediate_size}, {heads}"
        + (f", head_dim {drafter.head_dim}" if drafter.head_dim else ""),
        "target": f"hidden {drafter.target_hidden_size}, {drafter.num_aux_hidden_states} aux hidden states",
        "layer ids": f"IN {ids['in']} (what enters these layers) = OUT {ids['out']}"
        if ids
        else "not given: the engine's default",
        "vocabulary": coverage,
        "flags": flags,
        "RoPE": f"base {drafter.rope_theta:g}{scaling}, {drafter.max_position_embeddings or 'unstated'} positions",
        "embedding": "its own" if drafter.embedding else "the target's",
        "head": "its own" if drafter.head else "the target's",
    }
