"""Dotted paths into a config: `eagle_config.norm_before_fc`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

MISSING: Final = object()


def lookup(config: Mapping[str, Any], path: str) -> Any:
    """The value at `path`, or `MISSING`."""
    value: Any = config
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return MISSING
        value = value[key]
    return value


def put(config: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at `path`, making the objects on the way."""
    *parents, last = path.split(".")
    for key in parents:
        config = config.setdefault(key, {})
    config[last] = value


def take(config: dict[str, Any], path: str) -> Any:
    """Remove the value at `path` and return it, or `MISSING`; objects that become empty go too."""
    value = lookup(config, path)
    if value is MISSING:
        return value
    parent, dot, last = path.rpartition(".")
    holder = lookup(config, parent) if dot else config
    del holder[last]
    if dot and not holder:
        take(config, parent)
    return value


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its dotted path; an empty object is a leaf."""
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
