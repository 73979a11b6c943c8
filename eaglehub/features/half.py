"""Half of a store, for what is fitted to one half of the conversations and judged by the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.features.store import Features, Store


@dataclass(frozen=True, slots=True)
class Half:
    """Every other conversation of a store, from `first` on; the only one, where there is but one."""

    store: Store
    first: int

    def __iter__(self) -> Iterator[Features]:
        count = len(self.store.extraction.samples)
        for number, features in enumerate(self.store):
            if count == 1 or number % 2 == self.first:
                yield features
