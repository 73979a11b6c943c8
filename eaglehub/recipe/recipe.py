"""A recipe, read and checked whole before anything runs."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

import yaml

from eaglehub.checkpoint.hub import hub_name
from eaglehub.checkpoint.yamltext import load_yaml
from eaglehub.errors import UsageProblem
from eaglehub.recipe.document import Document, read_document
from eaglehub.recipe.verbs import FILES, MADE, PLACES, VERBS, Verb
from eaglehub.resources import resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from eaglehub.recipe.document import KeyPath

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_HEAD = ("source", "target", "prompts")


@dataclass(frozen=True, slots=True)
class Step:
    """One command.

    Attributes:
        name: unique in its chain.
        options: by their names on the command line, without the dashes; `${NAME}` stands for a variable.
        accepted: the exit codes with which it is done.
        key: where the recipe says so.
    """

    name: str
    verb: Verb
    options: Mapping[str, Any]
    accepted: tuple[int, ...]
    key: KeyPath


@dataclass(frozen=True, slots=True)
class Chain:
    """The steps of one drafter.

    Attributes:
        name: its name in the matrix, or `drafter` where there is none.
        source: a folder or a name on the Hub; empty when `after` gives it.
        after: the chain whose last drafter this one begins with.
    """

    name: str
    source: str
    after: str
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is to be done.

    Attributes:
        folder: relative paths in the recipe start here.
        work: where outputs are kept.
        chains: one after those that they begin with.
    """

    name: str
    folder: Path
    work: Path
    chains: Sequence[Chain]


def read_recipe(path: Path, settings: Sequence[str] = ()) -> Recipe:
    """Read and check a recipe.

    Args:
        path: the file.
        settings: `a.b=c` each: `upgrade.max-tokens=64` for an option of a step, else a key of the recipe.

    Raises:
        UnusableInput: the file is no recipe, or cannot work; the message names line and key.
        UsageProblem: a setting makes no sense.
    """
    document = read_document(path)
    _check(document, document.value, _schema())
    for setting in settings:
        _set(document, setting)
    _check(document, document.value, _schema())
    _check_texts(document)
    chains = [_chain(document, name, entry, key) for name, entry, key in _entries(document.value)]
    for chain in chains:
        _check_order(document, chain)
    folder = path.absolute().parent
    work = folder / filled(document.value.get("work", "work"))
    _check_paths(document, chains, folder, work)
    ordered = _in_order(document, chains)
    _check_licences(document, ordered, folder)
    return Recipe(path.name, folder, work, ordered)


def filled(text: str) -> str:
    """A text of a recipe with the values of its variables, and with `~` as a shell takes it."""
    text = _VARIABLE.sub(lambda found: os.environ[found[1]], text)
    return os.path.expanduser(text)  # noqa: PTH111 - Path's own raises where there is no such user


def _set(document: Document, setting: str) -> None:
    name, equals, text = setting.partition("=")
    keys = name.split(".")
    if not (equals and all(keys)):
        raise UsageProblem(f"{setting!r} is not KEY=VALUE, as in upgrade.max-tokens=64", where="--set")
    try:
        _, value = load_yaml(text)
    except yaml.YAMLError as error:
        raise UsageProblem(f"the value of {setting!r} is no YAML", where="--set") from error
    for step in document.value["steps"]:
        verb = next((key for key in step if key in VERBS), "")
        if len(keys) > 1 and keys[0] == step.get("name", verb):
            step[verb] = {**(step.get(verb) or {}), ".".join(keys[1:]): value}
            return
    place = document.value
    for key in keys[:-1]:
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise UsageProblem(f"{key} holds no keys", where=f"--set {name}")
    place[keys[-1]] = value


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(resource("schemas", "recipe.schema.json").read_bytes())
    return schema


@cache
def _validator() -> Any:
    """JSON Schema takes 1.0 for an integer, and the command line would not."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    integer = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return extend(Draft202012Validator, type_checker=integer)  # type: ignore[no-untyped-call]


def _check(document: Document, value: Any, schema: Mapping[str, Any], at: KeyPath = ()) -> None:
    """Hold what stands at a key to a schema."""
    from jsonschema.exceptions import best_match

    error = best_match(_validator()(schema).iter_errors(value))
    if error is None:
        return
    path = (*at, *error.absolute_path)
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        unknown = min(map(str, set(error.instance) - set(known)))
        raise document.problem("there is no such key here", (*path, unknown), f"known: {', '.join(known)}")
    raise document.problem(error.message, path)


def _check_texts(document: Document) -> None:
    """Every text can stand on a command line, once its variables have their values."""
    for path, text in _strings(document.value, ()):
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise document.problem("holds a character that no command line can", path)
        for name in _VARIABLE.findall(text):
            if name not in os.environ:
                raise document.problem(f"the variable {name} is not set", path, f"export {name}=...")


def _strings(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _strings(item, (*path, key))


def _entries(recipe: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], KeyPath]]:
    """Each chain's name, its own head over the recipe's, and where it stands."""
    head = {key: recipe[key] for key in _HEAD if key in recipe}
    for name, entry in recipe.get("matrix", {}).items():
        # Where it begins is one answer, whoever gives it.
        inherited = {key: value for key, value in head.items() if key != "source" or "after" not in entry}
        yield name, {**inherited, **entry}, ("matrix", name)
    if "matrix" not in recipe:
        yield "drafter", head, ()


def _chain(document: Document, name: str, entry: Mapping[str, Any], key: KeyPath) -> Chain:
    if not ("source" in entry or "after" in entry):
        raise document.problem("nothing says which drafter to begin with", key, "add source: FOLDER")
    if "source" in entry and "after" in entry:
        raise document.problem("begins with a source and after another at once", key, "keep one of them")
    differing = entry.get("steps", {})
    shared = {option: entry[option] for option in _HEAD if option in entry}
    steps = [
        _step(document, raw, ("steps", number), shared, differing) for number, raw in enumerate(document.value["steps"])
    ]
    names = [step.name for step in steps]
    for step in steps:
        if names.count(step.name) > 1:
            raise document.problem(f"two steps are called {step.name}", step.key, "give one a name:")
    for other, options in differing.items():
        if other not in names:
            raise document.problem("there is no such step", (*key, "steps", other), f"known: {', '.join(names)}")
        verb = steps[names.index(other)].verb
        _check(document, options, _schema()["$defs"][verb.name], (*key, "steps", other))
    return Chain(name, entry.get("source", ""), entry.get("after", ""), steps)


def _step(
    document: Document, raw: Mapping[str, Any], key: KeyPath, shared: Mapping[str, str], differing: Mapping[str, Any]
) -> Step:
    named = [name for name in raw if name in VERBS]
    if len(named) != 1:
        raise document.problem("a step has one command", key, f"one of {', '.join(VERBS)}")
    verb = VERBS[named[0]]
    name = raw.get("name", verb.name)
    head = {option: value for option, value in shared.items() if option in verb.shared}
    options = {**head, **(raw[verb.name] or {}), **differing.get(name, {})}
    if verb.argument and verb.argument not in options:
        raise document.problem(f"{verb.argument} is missing", (*key, verb.name))
    return Step(name, verb, options, (0, 1) if "go-on" in raw else (0,), (*key, verb.name))


def _check_order(document: Document, chain: Chain) -> None:
    """Drafters are made in one order, and nothing comes after what gives them away."""
    last = 0
    for step in chain.steps:
        if last == VERBS["publish"].rank or 0 < step.verb.rank <= last:
            before = next(verb.name for verb in VERBS.values() if verb.rank == last)
            raise document.problem(f"{step.verb.name} cannot come after {before}", step.key)
        last = max(last, step.verb.rank)


def _check_paths(document: Document, chains: Sequence[Chain], folder: Path, work: Path) -> None:
    from eaglehub.prompts import SUITES
    from eaglehub.prompts.load import MIXED

    for chain in chains:
        for key, text, places in _named_paths(chain):
            named = filled(text)
            known = hub_name(named) if key in ("source", *PLACES) else named in (MIXED, *SUITES)
            to_come = key in MADE and (folder / named).is_relative_to(work)
            if not (known or to_come or (folder / named).exists()):
                place = next(place for place in places if place in document.lines or len(place) == 1)
                raise document.problem(f"{text} does not exist", place)


def _check_licences(document: Document, chains: Sequence[Chain], folder: Path) -> None:
    """Publishing comes last, and must not fail there for want of a word."""
    sources: dict[str, Path] = {}
    for chain in chains:
        sources[chain.name] = source = folder / filled(chain.source) if chain.source else sources[chain.after]
        for step in chain.steps:
            told = step.options.keys() & {"license", "source-model"} or step.verb.name != "publish"
            if not told and source.is_dir() and not _names_licence(source):
                what = "license is missing: nothing says under which licence"
                raise document.problem(what, (*step.key, step.verb.name))


def _names_licence(source: Path) -> bool:
    """Whether the drafter's own card does, or the repository that it came from may."""
    from eaglehub.card import CARD, read_card
    from eaglehub.convert import PROVENANCE_FILE

    if (source / PROVENANCE_FILE).is_file():
        return True
    return (source / CARD).is_file() and bool(read_card(source / CARD).front.get("license"))


def _named_paths(chain: Chain) -> Iterator[tuple[str, str, list[KeyPath]]]:
    """What a chain names that must exist, and where the recipe may say so, the nearest first."""
    if chain.source:
        yield "source", chain.source, [("matrix", chain.name, "source"), ("source",)]
    for step in chain.steps:
        for key in (*PLACES, *FILES):
            if key in step.options:
                differing: KeyPath = ("matrix", chain.name, "steps", step.name, key)
                yield key, step.options[key], [differing, (*step.key, key), ("matrix", chain.name, key), (key,)]


def _in_order(document: Document, chains: Sequence[Chain]) -> list[Chain]:
    by_name = {chain.name: chain for chain in chains}
    for chain in chains:
        if chain.after and chain.after not in by_name:
            raise document.problem(f"there is no {chain.after} in the matrix", ("matrix", chain.name, "after"))
    try:
        order = TopologicalSorter({chain.name: [chain.after] if chain.after else [] for chain in chains}).static_order()
        return [by_name[name] for name in order]
    except CycleError as error:
        circle = " after ".join(reversed(error.args[1]))
        raise document.problem(f"goes in a circle: {circle}", ("matrix", error.args[1][0], "after")) from error
