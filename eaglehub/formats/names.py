"""Tensor-name patterns: the bijective renames that format specs are made of.

A pattern is literal text with holes: `{i}` a layer or chunk number, `{n}` the same but at least 1, `{rest}` anything,
`{any}` anything or nothing.
A rule's two sides hold the same holes, so it can be read in both directions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_HOLES = {"i": r"\d{1,4}", "n": r"[1-9]\d{0,3}", "rest": r".+", "any": r".*"}
_HOLE = re.compile(r"\{(\w+)\}")


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    position = 0
    for hole in _HOLE.finditer(pattern):
        name = hole.group(1)
        parts += [re.escape(pattern[position : hole.start()]), f"(?P<{name}>{_HOLES[name]})"]
        position = hole.end()
    return re.compile("".join([*parts, re.escape(pattern[position:])]))


def match(pattern: str, name: str) -> dict[str, str] | None:
    """The holes' texts when `name` fits `pattern`, else None."""
    found = _compiled(pattern).fullmatch(name)
    return found.groupdict() if found else None


def fill(pattern: str, holes: dict[str, str]) -> str:
    """The name that `pattern` gives for these holes."""
    return pattern.format(**holes)


@dataclass(frozen=True, slots=True)
class Rename:
    """A source name pattern and the canonical one it stands for."""

    source: str
    canonical: str

    @property
    def reversible(self) -> bool:
        """Whether all holes are known and both sides have the same, once each."""
        mine, others = (sorted(_HOLE.findall(side)) for side in (self.source, self.canonical))
        return mine == others and len(set(mine)) == len(mine) and set(mine) <= set(_HOLES)

    def forward(self, name: str) -> str | None:
        """Canonical name of a source tensor, None when the rule does not apply."""
        holes = match(self.source, name)
        return None if holes is None else fill(self.canonical, holes)

    def backward(self, name: str) -> str | None:
        """Source name of a canonical tensor, None when the rule does not apply."""
        holes = match(self.canonical, name)
        return None if holes is None else fill(self.source, holes)


@dataclass(frozen=True, slots=True)
class Drop:
    """A source tensor left behind on purpose."""

    source: str
    reason: str
