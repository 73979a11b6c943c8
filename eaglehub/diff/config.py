"""Differences between two configs, key by key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    """Config keys by dotted path; a part that itself holds a dot is quoted.

    Attributes:
        added: path to the value only the second config has.
        removed: path to the value only the first config has.
        changed: path to the values in the first and in the second.
    """

    added: dict[str, Any]
    removed: dict[str, Any]
    changed: dict[str, tuple[Any, Any]]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def diff_configs(before: dict[str, Any], after: dict[str, Any]) -> ConfigDiff:
    """Compare two parsed configs. Lists are compared whole; `1`, `1.0` and `true` are three different values."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    return ConfigDiff(
        added={path: value for path, value in new.items() if path not in old},
        removed={path: value for path, value in old.items() if path not in new},
        changed={path: (old[path], new[path]) for path in old if path in new and _text(old[path]) != _text(new[path])},
    )


def _leaves(config: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        path = f"{prefix}{_part(key)}"
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


def _part(key: str) -> str:
    return key if key.isprintable() and key and "." not in key else json.dumps(key)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
