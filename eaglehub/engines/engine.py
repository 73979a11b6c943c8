"""Engines as data: what one version of vLLM, SGLang or TensorRT-LLM makes of a drafter's tensors and config.

`schemas/engine-spec.schema.json` describes the YAML files beside this module. An entry with `since` holds from that
version on, one with `until` before that version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UsageProblem
from eaglehub.formats.names import Drop, Rename
from eaglehub.formats.spec import load_rules
from eaglehub.resources import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

ENGINES = ("vllm", "sglang", "tensorrt-llm")
NO_ENGINE = "none"
_NAME = re.compile(r"(?P<id>[a-z-]+)(?:==(?P<version>\d+(?:\.\d+)*))?")

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LayerIdReader:
    """Where a part of the engine looks for aux layer ids; its convention is `in`, or `sglang` (one less, mostly)."""

    reader: str
    convention: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuxCounter:
    """How the drafter classes of these kinds count aux states: by a number, else by a list's length."""

    kinds: tuple[str, ...]
    paths: tuple[str, ...]
    lists: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Where a config value is read; `default` may name another key, `defaults` has exceptions by model_type."""

    paths: tuple[str, ...]
    default: Any
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A format whose config the engine unwraps first.

    Attributes:
        forwards: the top-level keys that reach the drafter class.
    """

    format: str
    layer_config: str
    forwards: tuple[str, ...]
    defaults: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Limit:
    """What this version does to a drafter with all these traits; `since` is the first version without the fault."""

    traits: frozenset[str]
    effect: str
    since: str
    reports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine at one version.

    Attributes:
        version: as asked for; the newest described one by default.
        nearest: the described version that was taken instead of an older or newer one, empty when none was.
        refuses_unknown: whether a tensor with an unknown name is an error (else it is skipped in silence).
        architectures: name to kind of drafter; empty when the engine does not go by it.
        model_types: those the engine misunderstands, with what happens.
        targets: architectures whose hidden states it can capture; empty when not known.
        tied_head: what tie_word_embeddings does to a drafter with a head of its own, empty for nothing.
        tolerates: rules that do not matter to this engine, with the reason.
    """

    id: str
    title: str
    version: str
    nearest: str
    refuses_unknown: bool
    renames: tuple[Rename, ...]
    drops: tuple[Drop, ...]
    architectures: Mapping[str, str]
    model_types: Mapping[str, str]
    not_null: tuple[str, ...]
    layer_ids: tuple[LayerIdReader, ...]
    num_aux: tuple[AuxCounter, ...]
    keys: Mapping[str, KeyReader]
    wrapper: Wrapper | None
    limits: tuple[Limit, ...]
    targets: frozenset[str]
    tied_head: str
    tolerates: Mapping[str, str]

    @property
    def name(self) -> str:
        """For messages: title and version."""
        return f"{self.title} {self.version}"

    def loads_as(self, name: str) -> str | Drop | None:
        """Canonical name of the parameter that a tensor fills, the rule that leaves it out, or None when unknown."""
        for drop in self.drops:
            if Rename(drop.source, drop.source).forward(name) is not None:
                return drop
        return next((canonical for rule in self.renames if (canonical := rule.forward(name)) is not None), None)

    def fills(self, name: str) -> bool:
        """Whether any tensor fills the parameter of that canonical name, be it one of another name."""
        sources = (rule.backward(name) for rule in self.renames)
        return any(source is not None and not isinstance(self.loads_as(source), Drop) for source in sources)


def load_engine(wanted: str) -> Engine | None:
    """The engine called `NAME` (its newest described version) or `NAME==VERSION`; None for `none`.

    A version outside what is described is judged by the nearest one that is.

    Raises:
        UsageProblem: there is no such engine, or the version is no version.
    """
    if wanted == NO_ENGINE:
        return None
    parts = _NAME.fullmatch(wanted)
    if not parts or parts["id"] not in ENGINES:
        known = ", ".join((*ENGINES, NO_ENGINE))
        raise UsageProblem(f"unknown engine {wanted!r}", where="--engine", fix=f"one of {known}, or as in vllm==0.32")
    raw = read_yaml(Path(__file__).parent / f"{parts['id']}.yaml")
    oldest, newest = raw["versions"]
    version = parts["version"] or newest
    judged = min(max(_parsed(version), _parsed(oldest)), (*_parsed(newest), 10**6))
    nearest = next((end for end in (oldest, newest) if _beyond(version, oldest, newest) == end), "")
    return _engine(raw, version, nearest, judged)


def _beyond(version: str, oldest: str, newest: str) -> str:
    """The end of the described range that `version` lies outside of, else empty."""
    parsed = _parsed(version)
    if parsed < _parsed(oldest):
        return oldest
    return newest if parsed[: len(_parsed(newest))] > _parsed(newest) else ""


def _parsed(version: str) -> Version:
    return tuple(int(part) for part in version.split("."))


def _holds(entry: Mapping[str, Any], version: Version) -> bool:
    since, until = entry.get("since"), entry.get("until")
    return (since is None or version >= _parsed(since)) and (until is None or version < _parsed(until))


def _engine(raw: Mapping[str, Any], version: str, nearest: str, judged: Version) -> Engine:
    renames, drops = load_rules(raw["tensors"])
    wrapper = raw.get("wrapper")
    return Engine(
        id=raw["id"],
        title=raw["title"],
        version=version,
        nearest=nearest,
        refuses_unknown=raw["unknown_tensors"] == "refused",
        renames=renames,
        drops=drops,
        architectures=raw.get("architectures", {}),
        model_types=raw.get("model_types", {}),
        not_null=tuple(raw.get("not_null", ())),
        layer_ids=tuple(
            LayerIdReader(entry["reader"], entry["convention"], tuple(entry["paths"]))
            for entry in raw["layer_ids"]
            if _holds(entry, judged)
        ),
        num_aux=tuple(
            AuxCounter(tuple(entry["kinds"]), tuple(entry["paths"]), tuple(entry["lists"])) for entry in raw["num_aux"]
        ),
        keys={
            key: KeyReader(tuple(entry["paths"]), entry["default"], entry.get("defaults", {}))
            for key, entry in raw["keys"].items()
        },
        wrapper=Wrapper(
            wrapper["format"],
            wrapper["layer_config"],
            tuple(wrapper["forwards"]),
            wrapper["defaults"],
        )
        if wrapper
        else None,
        limits=tuple(
            Limit(frozenset(entry["traits"]), entry["effect"], entry.get("since", ""), tuple(entry.get("reports", ())))
            for entry in raw["limits"]
            if "since" not in entry or not _holds(entry, judged)
        ),
        targets=frozenset(raw.get("targets", ())),
        tied_head=raw.get("tied_head", ""),
        tolerates=raw.get("tolerates", {}),
    )
