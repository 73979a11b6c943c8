"""The sets of tensors that can be trained, smallest first; no torch here, the command's options read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eaglehub.drafter.shared import EMBEDDING, HEAD
from eaglehub.drafter.tensors import expected_tensors
from eaglehub.errors import UsageProblem

if TYPE_CHECKING:
    from eaglehub.drafter.drafter import Drafter

_NORMS = r"fc_norm\.\d+|norm|layers\.\d+\.(hidden_norm|input_layernorm|post_attention_layernorm)"

# Of canonical names, without `.weight` or `.bias`.
SETS = {
    "fc-norm": r"fc_norm\.\d+",
    "norms": _NORMS,
    "norms+fc": rf"{_NORMS}|fc",
    "all": r".*",
}
# Peak learning rate of matrices, and how many times larger that of a norm's relative change is. It suits every set, for
# they differ in what is trained and not in its terms. Three times as much was measured to be too much.
RATE, RELATIVE = 3e-4, 10.0
# The smallest that was measured to beat the drafter that the upgrade began with.
DEFAULT = "norms+fc"


def trained_names(drafter: Drafter, name: str) -> list[str]:
    """Canonical names of the tensors that the set `name` of `SETS` trains; never what is shared with the target.

    Raises:
        UsageProblem: the drafter has none of them.
    """
    shared = {EMBEDDING, "d2t", *(() if drafter.head else (HEAD,))}
    own = (each for each in expected_tensors(drafter) if each not in shared)
    names = [each for each in own if re.fullmatch(SETS[name], re.sub(r"\.(weight|bias)$", "", each))]
    if not names:
        raise UsageProblem("the drafter has no fc_norm", where=f"--trainable {name}", fix="eaglehub upgrade adds it")
    return names
