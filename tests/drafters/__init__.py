"""Tiny but complete drafters as each producer writes them, and what must become of them.

The expectations come from the producers' own definitions and not from the code under test.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from . import automodel, broken, modelopt, native, peers, safeailab, specforge, speculators, torchspec, vocabulary
from .source import Built, Expected, Source, write
from .targets import target_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["BROKEN", "BUILDERS", "NEEDS_TORCH", "SOUND", "Built", "Expected", "build", "target_config"]


def _build(source: Callable[[], Source], folder: Path) -> Built:
    return write(source(), folder)


_FAMILIES = (safeailab, specforge, speculators, modelopt, automodel, torchspec, native, vocabulary, peers)

BUILDERS: dict[str, Callable[[Path], Built]] = {
    name: partial(_build, source) for family in _FAMILIES for name, source in family.FIXTURES.items()
}
"""Every fixture by name; those whose `expected` is None are in `BROKEN` too."""

SOUND: dict[str, Callable[[Path], Built]] = {name: BUILDERS[name] for name in peers.FIXTURES}
"""Drafters that other converters damage in silence: they must convert whole."""

BROKEN: dict[str, tuple[Callable[[Path], Built], str]] = {
    name: (partial(_build, source), text) for name, (source, text) in broken.FIXTURES.items()
}
"""Builder, and the tensor or key that the finding must name."""


NEEDS_TORCH = frozenset({"safeailab", "automodel-legacy"})
"""Fixtures written as pickles."""


def build(name: str, folder: Path) -> Built:
    """Write the fixture `name`, sound or broken, into `folder`."""
    builder = BUILDERS.get(name) or BROKEN[name][0]
    return builder(folder)
