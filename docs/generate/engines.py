"""What each engine makes of a drafter, from its spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import eaglehub.engines
from docs.generate.markdown import CONVENTIONS, code, table
from eaglehub.engines import ENGINES
from eaglehub.resources import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FOLDER = Path(eaglehub.engines.__file__).parent
# The traits that engines differ in, as a reader would call them.
_TRAITS = {
    "fc_norm": "`fc_norm`",
    "norm_output": "`norm_output`",
    "norm_before_fc": "`norm_before_fc`",
    "norm_before_residual": "`norm_before_residual`",
    "several_layers": "more than one layer",
    "not_three_aux": "other than three aux states",
    "no_aux": "no aux states",
    "final_state": "the state after the last layer",
    "embedding_state": "the embedding as a state",
    "qwen3": "qwen3 drafter (q/k norms)",
    "mla": "MLA drafter",
    "mla_plain_q": "MLA without the low-rank q projection",
    "attention_bias": "attention biases",
    "parallel_drafting": "P-EAGLE (parallel drafting)",
    "own_embedding": "its own embedding",
    "shared_embedding": "the target's embedding",
    "own_head": "its own head",
    "quantized": "quantised weights",
    "quantized_head": "a quantised head",
    "short_positions": "fewer positions than the target",
    "pipeline": "pipeline parallelism",
    "format:speculators": "speculators format",
    "target:hybrid": "hybrid target",
    "target:latent": "DeepSeek-like target",
}


def engines() -> Iterator[str]:
    """Lines of the page."""
    specs = [read_yaml(_FOLDER / f"{name}.yaml") for name in ENGINES]
    yield "# Engines"
    yield ""
    yield "What each engine makes of a drafter, and from which version on: the files in `eaglehub/engines/`. They were"
    yield "read from the engines' code ([what was run](../eagle-3.1.md#what-was-run) is less), and are what"
    yield "`eaglehub validate --engine NAME==VERSION` judges by. Yes means that nothing is known to stand in the way."
    heads = (f"{engine['title']} {' to '.join(engine['versions'])}" for engine in specs)
    yield from ("", *table(("a drafter with", *heads), _compatibility(specs)))
    for engine in specs:
        yield from _engine(engine)


def _compatibility(engines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """A row for each set of traits that any engine limits, the small sets first."""
    sets = {frozenset(limit["traits"]) for engine in engines for limit in engine["limits"]}
    for traits in sorted(sets, key=lambda traits: (len(traits), _title(traits))):
        yield (_title(traits), *(_support(engine, traits) for engine in engines))


def _title(traits: Iterable[str]) -> str:
    return ", ".join(sorted(map(_trait, traits), key=lambda title: title.lstrip("`").lower()))


def _trait(name: str) -> str:
    if name not in _TRAITS and name.startswith("target:"):
        return f"target {code(name.removeprefix('target:'))}"
    return _TRAITS[name]


def _support(engine: dict[str, Any], traits: frozenset[str]) -> str:
    """From which version on nothing stands in the way; what stands in the way of some traits does so of more."""
    since = [limit.get("since") for limit in engine["limits"] if traits.issuperset(limit["traits"])]
    versions = [version for version in since if version]
    if len(versions) < len(since):
        return "no"
    return f"from {max(versions, key=_parsed)}" if versions else "yes"


def _parsed(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _engine(engine: dict[str, Any]) -> Iterator[str]:
    oldest, newest = engine["versions"]
    yield from ("", f"## {engine['title']}", "", f"Described from {oldest} to {newest}.")
    unknown = {"refused": "is refused when it is loaded", "skipped": "is skipped without a word"}
    yield f"A tensor with an unknown name {unknown[engine['unknown_tensors']]}."
    if engine["layer_ids"]:
        rows = (
            (
                reader["reader"],
                _span(reader),
                ", ".join(map(code, reader["paths"])),
                CONVENTIONS[reader["convention"]],
            )
            for reader in engine["layer_ids"]
        )
        yield from ("", *table(("who reads layer ids", "versions", "where, in this order", "convention"), rows))
    else:
        yield "It does not read layer ids from the drafter's config."
    keys = ((code(key), ", ".join(map(code, entry["paths"])), _default(entry)) for key, entry in engine["keys"].items())
    yield from ("", *table(("key", "where, in this order", "when absent"), keys))
    yield from ("", "What stands in the way:", "")
    yield from map(_limit, engine["limits"])
    if engine.get("targets"):
        yield from ("", f"Targets that can hand out their states, in {newest}:", "")
        yield ", ".join(map(code, engine["targets"])) + "."


def _span(reader: dict[str, Any]) -> str:
    since, until = reader.get("since"), reader.get("until")
    if since is None and until is None:
        return "all"
    return " ".join([*([f"from {since}"] if since else []), *([f"before {until}"] if until else [])])


def _default(entry: dict[str, Any]) -> str:
    """`=key` in an engine's file is another key's value."""
    texts = [code(json.dumps(entry["default"]).strip('"').removeprefix("="))]
    texts += [f"{code(str(value))} for {kind}" for kind, value in entry.get("defaults", {}).items()]
    return ", ".join(texts)


def _limit(limit: dict[str, Any]) -> str:
    until = f"before {limit['since']}" if "since" in limit else "in every version"
    reports = ", ".join(_report(report) for report in limit.get("reports", ()))
    return f"- {_title(limit['traits'])}, {until}: {limit['effect']}" + (f" ({reports})." if reports else ".")


def _report(name: str) -> str:
    return "[{0}#{1}](https://github.com/{0}/issues/{1})".format(*name.split("#"))
