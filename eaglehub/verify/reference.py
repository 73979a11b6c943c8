"""The reference drafter, and what was recorded in the engine: prompts, the target's states, the drafts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UnusableInput
from eaglehub.features import Features
from eaglehub.scoring.load import load_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from eaglehub.drafter.model import DraftModel
    from eaglehub.drafter.target import Target
    from eaglehub.scoring.candidate import Candidate
    from eaglehub.verify.process import EngineRun


@dataclass(frozen=True, slots=True)
class Recorded:
    """What passed between target and drafter for one prompt of T tokens.

    Attributes:
        features: with the states that the target handed over.
        states: what enters a layer of the target, [T - 1, Ht], by layer: those and their neighbours.
        drafts: for each draft the position of the last token whose states it had, and its K tokens, [D, 1 + K].
    """

    features: Features
    states: Mapping[int, Tensor]
    drafts: Tensor

    def reading(self, layer_ids: Sequence[int]) -> Features | None:
        """The features that a drafter of these layers reads; None if one of them was not recorded."""
        if not all(layer in self.states for layer in layer_ids):
            return None
        return replace(self.features, aux=_side_by_side([self.states[layer] for layer in layer_ids]))


@dataclass(frozen=True, slots=True)
class Reference:
    """A drafter as its file says, in the engine's dtype, and what was recorded of the engine's own."""

    model: DraftModel
    layer_ids: tuple[int, ...]
    recorded: tuple[Recorded, ...]


def load_reference(candidate: Candidate, target: Target, run: EngineRun, record: Path) -> Reference:
    """The reference drafter and what was recorded.

    Args:
        candidate: the drafter as read.
        target: what it drafts for.
        run: the engine that recorded its batch.
        record: the file into which it did.

    Raises:
        UnusableInput: the drafter cannot be run here, or nothing was recorded.
        EnvironmentProblem: there is no torch.
    """
    numbers = run.jobs["batch"].get("recorded")
    if target.folder is None or not numbers:
        raise UnusableInput("this vLLM does not show its drafts", where="engine")
    steps = candidate.reading.tensors.values()
    model = load_model(candidate.checkpoint, steps, candidate.drafter, target.folder, run.facts["dtype"]).float()
    captured = (run.inside or {"flags": {}})["flags"].get("aux_layer_ids") or ()
    tensors = _load(record)
    recorded = tuple(_recorded(tensors, number, run.jobs["batch"]["outputs"][number], captured) for number in numbers)
    ids = target.layer_ids_for(candidate.drafter) if candidate.drafter.num_aux_hidden_states else ()
    return Reference(model, ids, recorded)


def _recorded(tensors: Mapping[str, Any], number: int, output: Mapping[str, Any], captured: Sequence[int]) -> Recorded:
    own = {name.partition(".")[2]: tensor for name, tensor in tensors.items() if name.startswith(f"{number}.")}
    aux = own["aux"].float()
    parts = aux.chunk(len(captured), dim=-1) if captured else ()
    around = {int(name): tensor.float() for name, tensor in own.items() if name.isdecimal()}
    start = output["prompt_tokens"]
    end = start + len(output["samples"][0]["tokens"])
    features = Features(own["tokens"], start, min(end, len(own["tokens"])), aux, aux)
    return Recorded(features, dict(zip(captured, parts, strict=True)) | around, own["drafts"])


def _load(file: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    tensors: dict[str, Tensor] = load_file(file)
    return tensors


def _side_by_side(states: Sequence[Tensor]) -> Tensor:
    import torch

    return torch.cat(list(states), dim=-1)
