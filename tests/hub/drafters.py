"""Drafters to put on the loopback Hub."""

from __future__ import annotations

import json
from functools import cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tests.checkpoint.helpers import raw_safetensors
from tests.drafters.drafter import Drafter
from tests.drafters.native import IDS, _template
from tests.hub.store import Blob

if TYPE_CHECKING:
    from tests.hub.hub import LoopbackHub

_ITEM_BYTES = 2  # bfloat16


@cache
def large() -> dict[str, bytes | Blob]:
    """A sound drafter of over 200 MB, whose matrices and norms are all zeros: only headers and d2t can be judged."""
    drafter = Drafter(
        hidden=2048,
        target_hidden=2048,
        vocab=128256,
        draft_vocab=32000,
        heads=32,
        kv_heads=8,
        head_dim=64,
        intermediate=4096,
        fc_norm=True,
    )
    config = _template(drafter) | drafter.facts() | {"norm_output": True, "eagle_aux_hidden_state_layer_ids": IDS}
    d2t = np.arange(drafter.draft_vocab) // 100  # offsets whose ids ascend
    header = {"d2t": {"dtype": "I64", "shape": [drafter.draft_vocab], "data_offsets": [0, d2t.nbytes]}}
    position = d2t.nbytes
    for name, shape in drafter._shapes().items():
        end = position + prod(shape) * _ITEM_BYTES
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [position, end]}
        position = end
    start = raw_safetensors(header)
    weights = Blob(start + d2t.astype("<i8").tobytes(), len(start) + position, lfs=True)
    return {"config.json": json.dumps(config).encode(), "model.safetensors": weights}


def head(hub: LoopbackHub, repo: str = "acme/drafter", revision: str = "main") -> str:
    """The commit that a revision is."""
    return hub.repos[repo].head(revision).oid
