"""Target features: the states that drafters read, and what lm_head reads, for every token of a set of conversations."""

from __future__ import annotations

from eaglehub.features.encode import Condition, Sample, encode
from eaglehub.features.extraction import Source, extract
from eaglehub.features.store import Features, Recipe, Store

__all__ = ["Condition", "Features", "Recipe", "Sample", "Source", "Store", "encode", "extract"]
