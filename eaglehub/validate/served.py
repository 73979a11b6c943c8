"""The config as an engine sees it: unwrapped where the engine unwraps, read where the engine reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.formats.config_paths import MISSING, lookup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.engines import Engine
    from eaglehub.engines.engine import KeyReader


def served_config(config: Mapping[str, Any], engine: Engine | None, format_id: str) -> Mapping[str, Any]:
    """What reaches the drafter class: of a wrapped format, the layer's config and the keys that are forwarded."""
    wrapper = engine.wrapper if engine else None
    if wrapper is None or wrapper.format != format_id:
        return config
    layer = config.get(wrapper.layer_config)
    forwarded = {key: config[key] for key in wrapper.forwards if config.get(key) is not None}
    return (dict(layer) if isinstance(layer, dict) else {}) | dict(wrapper.defaults) | forwarded


def read_key(config: Mapping[str, Any], reader: KeyReader) -> Any:
    """The value at the first of the reader's paths that has one, else the default."""
    value = first_value(config, reader.paths)
    if value is not None:
        return value
    default = reader.defaults.get(str(config.get("model_type")), reader.default)
    return _computed(default[1:], config) if isinstance(default, str) and default.startswith("=") else default


def _computed(formula: str, config: Mapping[str, Any]) -> Any:
    """The value of `key` or of `key//key`; None when a key has no usable number."""
    left, divided, right = formula.partition("//")
    value, by = config.get(left), config.get(right)
    if not divided:
        return value
    return value // by if isinstance(value, int) and isinstance(by, int) and by > 0 else None


def first_value(config: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    """The first value that is there and not null, or None."""
    values = (lookup(config, path) for path in paths)
    return next((value for value in values if value is not MISSING and value is not None), None)


def first_list(config: Mapping[str, Any], paths: tuple[str, ...]) -> list[int] | None:
    """The first non-empty list of integers, or None."""
    values = (lookup(config, path) for path in paths)
    return next((value for value in values if isinstance(value, list) and value and all(map(_is_integer, value))), None)


def first_number(config: Mapping[str, Any], paths: tuple[str, ...]) -> int | None:
    """The first integer, or None."""
    return next((value for path in paths if _is_integer(value := lookup(config, path))), None)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
