"""What the target would say after each token of the answers, kept beside its states.

The product with its whole head is too dear to be taken anew in every epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from pathlib import Path

    from eaglehub.features.store import Features, Store

_SCORES = 1 << 24


def fill_choices(store: Store, head: Tensor) -> None:
    """Make what is missing of a filled store's choices.

    Args:
        store: with all its shards.
        head: the target's lm_head, [V, Ht].

    Raises:
        EnvironmentProblem: the disk is full.
        UnusableInput: a shard is damaged.
    """
    for number in range(len(store.extraction.shards)):
        file = _file(store, number)
        if not file.exists():
            features = store.read_shard(number)
            store.write(file, {str(index): _choices(each, head) for index, each in enumerate(features)})


def read_choices(store: Store, number: int) -> Tensor:
    """The target's likeliest next token after each position of one sample, [T - 1] int64; -1 outside its answers.

    Raises:
        UnusableInput: the file is damaged.
    """
    shard, index = store.place(number)
    with store.opened(_file(store, shard)) as tensors:
        return tensors.get_tensor(str(index))


def likeliest(states: Tensor, head: Tensor) -> Tensor:
    """Rows of the head [V, Ht] that fit states [..., Ht] best, in chunks whose size does not depend on V."""
    chunks = states.split(max(_SCORES // len(head), 1))
    return torch.cat([(chunk.to(head.device, head.dtype) @ head.T).argmax(-1).cpu() for chunk in chunks])


def _choices(features: Features, head: Tensor) -> Tensor:
    choices = torch.full((len(features.tokens) - 1,), -1)
    with torch.inference_mode():
        for start, end in (*features.earlier, (features.prompt_length, None)):
            answer = slice(start - 1, end)
            choices[answer] = likeliest(features.head_input[answer], head)
    return choices


def _file(store: Store, shard: int) -> Path:
    return store.folder / f"choices-{shard:05d}.safetensors"
