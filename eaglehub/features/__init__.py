"""Target features: the states that drafters read, and what lm_head reads, for every token of a set of conversations."""

from __future__ import annotations

from eaglehub.features.encode import Condition, Sample, encode
from eaglehub.features.extraction import Source, extract
from eaglehub.features.half import Half
from eaglehub.features.store import Extraction, Features, Span, Store, fingerprint

__all__ = [
    "Condition",
    "Extraction",
    "Features",
    "Half",
    "Sample",
    "Source",
    "Span",
    "Store",
    "encode",
    "extract",
    "fingerprint",
]
