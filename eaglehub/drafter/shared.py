"""The tensors that engines share between target and drafter, read from the target's own weight files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.checkpoint import open_checkpoint
from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from pathlib import Path

    from eaglehub.checkpoint import Checkpoint

EMBEDDING, HEAD = "embed_tokens.weight", "lm_head.weight"

# How model families end the names of these tensors, the most common first.
_ENDINGS = {
    EMBEDDING: (
        "embed_tokens.weight",
        "wte.weight",
        "word_embeddings.weight",
        "embed_in.weight",
        "tok_embeddings.weight",
    ),
    HEAD: ("lm_head.weight", "embed_out.weight", "output.weight"),
}


def open_target(folder: Path) -> Checkpoint:
    """The target's weights.

    Raises:
        UnusableInput: there are none beside its config.
    """
    return open_checkpoint(folder)


def find_shared(target: Checkpoint, name: str) -> str:
    """The target's name of its `EMBEDDING` or `HEAD`; a target without a head uses its embedding for it.

    Raises:
        UnusableInput: it has none under any name that is known.
    """
    for ending in _ENDINGS[name] + (_ENDINGS[EMBEDDING] if name == HEAD else ()):
        found = [own for own in target.tensors if own == ending or own.endswith(f".{ending}")]
        # A multimodal target may have towers with embeddings of their own; its language model's is the largest.
        if found:
            return max(found, key=lambda own: target.tensors[own].size)
    raise UnusableInput(f"has no {name}, which the drafter shares with it", where=f"target {target.name}")
