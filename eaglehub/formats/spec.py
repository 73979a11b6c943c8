"""Format specs: what a producer's checkpoint looks like and means, loaded from the YAML files beside this module and
from plugins.

`schemas/format-spec.schema.json` describes the files; CONTRIBUTING.md says how to add one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub.drafter.drafter import FLAGS
from eaglehub.errors import UsageProblem
from eaglehub.formats.names import Drop, Rename
from eaglehub.plugins import FORMATS, load_plugins
from eaglehub.resources import read_yaml, resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from eaglehub.plugins import Plugin

# Where the flags stand unless a spec says otherwise; the nested ones are what TensorRT-LLM reads.
_FLAG_KEYS = {
    "fc_norm": ("fc_norm",),
    "norm_output": ("norm_output", "eagle_config.norm_output", "eagle_config.return_hidden_post_norm"),
    "norm_before_fc": ("norm_before_fc", "eagle_config.norm_before_fc"),
    "norm_before_residual": ("norm_before_residual",),
}


@dataclass(frozen=True, slots=True)
class Signature:
    """Conditions that together speak for a producer.

    `strength` is `stamp` for what only this producer writes and `layout` for names and architecture that merely fit.
    """

    strength: str
    config: dict[str, Any] = field(default_factory=dict)
    tensors: tuple[str, ...] = ()
    metadata: str = ""
    without_config: tuple[str, ...] = ()
    without_tensors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flag:
    """Where a flag stands and what is not certain about it.

    `ask` is `true` when the value true does not say what it means, `missing` when the key's absence does not.
    """

    keys: tuple[str, ...]
    ask: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class LayerIds:
    """Nested aux layer ids: in which convention, and the evidence that tells an exception.

    Attributes:
        nested: dotted config path of the list.
        convention: `in`, `out`, or empty when unknown (the user is asked).
        kimi_first_id: a kimi_k2 list that starts with this id is in the IN convention.
        unsure_with: a tensor whose presence means that the list was not written by the producer's own exporter.
        why: what is known about the convention, for the messages.
    """

    nested: str = ""
    convention: str = ""
    kimi_first_id: int | None = None
    unsure_with: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Writer:
    """How the canonical drafter is laid out for this format, and what it cannot hold."""

    architectures: dict[str, str]
    model_type: dict[str, str]
    cannot: dict[str, str]
    layer_ids: dict[str, Any]
    flags: dict[str, Any]
    omit: tuple[str, ...] = ()
    nest: str = ""
    nested_keys: tuple[str, ...] = ()
    add: dict[str, Any] = field(default_factory=dict)
    vocab_map: dict[str, str] = field(default_factory=dict)
    verifier: bool = False
    twin_norms: bool = False
    raw_targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """One producer's layout."""

    id: str
    title: str
    about: str
    detect: tuple[Signature, ...]
    strip: tuple[str, ...]
    renames: tuple[Rename, ...]
    drops: tuple[Drop, ...]
    layer_config: str
    other_keys: str
    drop_keys: dict[str, str]
    flags: dict[str, Flag]
    layer_ids: LayerIds
    rope: dict[str, Any]
    writer: Writer | None

    def canonical_name(self, name: str) -> str | Drop | None:
        """Canonical name of a source tensor, the rule that drops it, or None when the spec does not know it."""
        for marker in self.strip:
            _, found, rest = name.rpartition(marker)
            name = rest if found else name
        for drop in self.drops:
            if Rename(drop.source, drop.source).forward(name) is not None:
                return drop
        return next((canonical for rule in self.renames if (canonical := rule.forward(name)) is not None), None)

    def source_name(self, canonical: str) -> str | None:
        """This format's name for a canonical tensor, None when it has none."""
        return next((name for rule in self.renames if (name := rule.backward(canonical)) is not None), None)


@cache
def load_formats() -> dict[str, FormatSpec]:
    """Every known format by id, in alphabetical order.

    Raises:
        EnvironmentProblem: a plugin's spec cannot be used.
    """
    formats = {spec.id: spec for spec in map(load_format, Path(__file__).parent.glob("*.yaml"))}
    for plugin in load_plugins(FORMATS):
        for spec in _plugin_formats(plugin):
            if spec.id in formats:
                raise plugin.problem(f"there is a format {spec.id!r} already")
            formats[spec.id] = spec
    return dict(sorted(formats.items()))


def _plugin_formats(plugin: Plugin) -> Iterator[FormatSpec]:
    """A plugin's specs, each held to the schema, as ours are by the tests."""
    files = plugin.files("*.yaml")
    if not files:
        raise plugin.problem(f"{plugin.module.__name__} is no package with *.yaml files in it")
    for file in files:
        if problem := _fault(file):
            raise plugin.problem(f"{file.name}: {problem}")
        spec = load_format(file)
        if crooked := next((rule for rule in spec.renames if not rule.reversible), None):
            raise plugin.problem(f"{file.name}: {crooked.source} and {crooked.canonical} differ in their holes")
        yield spec


def _fault(file: Path) -> str:
    """What is wrong with a spec file by the schema; empty when nothing is."""
    import yaml
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    schema = json.loads(resource("schemas", "format-spec.schema.json").read_bytes())
    try:
        error = best_match(Draft202012Validator(schema).iter_errors(read_yaml(file)))
    except (yaml.YAMLError, UnicodeDecodeError) as broken:
        return f"it is no YAML: {broken}"
    return f"{error.json_path}: {error.message}" if error else ""


def readable_formats() -> dict[str, FormatSpec]:
    """The formats that a source can be in."""
    return {format_id: spec for format_id, spec in load_formats().items() if spec.detect}


def writable_formats() -> dict[str, FormatSpec]:
    """The formats that a drafter can be written in."""
    return {format_id: spec for format_id, spec in load_formats().items() if spec.writer}


def pick_format(formats: Mapping[str, FormatSpec], format_id: str, option: str) -> FormatSpec:
    """The format of that id.

    Raises:
        UsageProblem: there is none among these.
    """
    if format_id not in formats:
        raise UsageProblem(f"unknown format {format_id!r}", where=option, fix=f"one of: {', '.join(formats)}")
    return formats[format_id]


def load_format(path: Path) -> FormatSpec:
    """Read one spec file."""
    raw = read_yaml(path)
    renames, drops = load_rules(raw["tensors"])
    config = raw.get("config", {})
    return FormatSpec(
        id=raw["id"],
        title=raw["title"],
        about=" ".join(raw["about"].split()),
        detect=tuple(_signature(entry) for entry in raw.get("detect", ())),
        strip=tuple(raw.get("strip", ())),
        renames=renames,
        drops=drops,
        layer_config=config.get("layer_config", ""),
        other_keys=config.get("other_keys", "keep"),
        drop_keys=config.get("drop", {}),
        flags={name: _flag(name, raw.get("flags", {}).get(name, {})) for name in FLAGS},
        layer_ids=LayerIds(**raw.get("layer_ids", {})),
        rope=raw.get("rope", {}),
        writer=_writer(raw["write"]) if "write" in raw else None,
    )


def load_rules(entries: list[dict[str, Any]]) -> tuple[tuple[Rename, ...], tuple[Drop, ...]]:
    """The tensor rules of a spec file, renames and drops apart; the first one that fits a name holds."""
    rules = [_rule(rule) for entry in entries for rule in _expand(entry)]
    renames = tuple(rule for rule in rules if isinstance(rule, Rename))
    return renames, tuple(rule for rule in rules if isinstance(rule, Drop))


def _expand(entry: dict[str, Any]) -> list[dict[str, str]]:
    """`same: [a, b]` is short for the identity renames of a and b."""
    return [{"from": name, "to": name} for name in entry["same"]] if "same" in entry else [entry]


def _rule(entry: dict[str, str]) -> Rename | Drop:
    return Drop(entry["from"], entry["drop"]) if "drop" in entry else Rename(entry["from"], entry["to"])


def _signature(entry: dict[str, Any]) -> Signature:
    return Signature(**_with_tuples(entry, ("tensors", "without_config", "without_tensors")))


def _flag(name: str, entry: dict[str, Any]) -> Flag:
    return Flag(
        keys=tuple(entry.get("keys", _FLAG_KEYS[name])), ask=str(entry.get("ask", "")), why=entry.get("why", "")
    )


def _writer(entry: dict[str, Any]) -> Writer:
    return Writer(**_with_tuples(entry, ("omit", "nested_keys", "raw_targets")))


def _with_tuples(entry: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: tuple(value) if key in keys else value for key, value in entry.items()}
