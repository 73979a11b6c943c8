"""Sound checkpoints whose vocabulary map is written otherwise than as int64 offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .drafter import Array, Drafter
from .modelopt import modelopt
from .specforge import OUT, specforge

if TYPE_CHECKING:
    from .source import Fixtures, Source


def with_d2t(source: Source, d2t: Array) -> Source:
    """The same checkpoint with another map."""
    return replace(source, tensors=source.tensors | {"d2t": d2t})


FIXTURES: Fixtures = {
    "absolute-d2t": lambda: with_d2t(specforge(Drafter(), ids=OUT), Drafter().draft_ids()),
    "absolute-d2t-no-t2d": lambda: with_d2t(modelopt(Drafter()), Drafter().draft_ids()),
    "d2t-int32": lambda: with_d2t(specforge(Drafter(), ids=OUT), Drafter().d2t().astype(np.int32)),
}
