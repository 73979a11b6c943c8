"""The recipe's JSON Schema, from the commands themselves: `python -m eaglehub.cli.recipe_schema`.

Options are declared once, on the commands; a test holds that `schemas/recipe.schema.json` is what this gives.
"""

from __future__ import annotations

import json
from typing import Any

import click

from eaglehub.cli.main import cli
from eaglehub.recipe.verbs import VERBS, Verb
from eaglehub.resources import resource

# How a report is shown is the runner's to say.
_REPORTING = {"format", "json", "output", "help"}
_HEAD = {
    "source": "The drafter to begin with: a folder, or a name on the Hub.",
    "target": "The target model, for every step that takes one.",
    "prompts": "Prompts, for every step that takes some: a file or a built-in suite.",
}


def recipe_schema() -> dict[str, Any]:
    """The schema, JSON-ready."""
    head = {name: {"type": "string", "minLength": 1, "description": text} for name, text in _HEAD.items()}
    options = {name: _options(verb) for name, verb in VERBS.items()}
    name = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"}
    step = {
        "type": "object",
        "properties": {
            "name": {**name, "description": "Tells two steps with the same command apart."},
            "go-on": {"const": True, "description": "Go on when it ends with exit code 1, and count it as done."},
            **{verb: {"$ref": f"#/$defs/{verb}"} for verb in options},
        },
        "additionalProperties": False,
        "minProperties": 1,
    }
    entry = {
        "type": "object",
        "properties": {
            **head,
            "after": {**name, "description": "Begin with the last drafter of this other entry."},
            "steps": {
                "type": "object",
                "additionalProperties": {"type": "object"},
                "description": "Options that differ for this drafter, by the step's name.",
            },
        },
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A recipe for `eaglehub run`",
        "type": "object",
        "properties": {
            **head,
            "work": {"type": "string", "minLength": 1, "description": "Folder of all outputs.  [default: work]"},
            "steps": {"type": "array", "items": step, "minItems": 1},
            "matrix": {
                "type": "object",
                "propertyNames": name,
                "additionalProperties": entry,
                "minProperties": 1,
                "description": "Several drafters, each with what differs from the head.",
            },
        },
        "required": ["steps"],
        "additionalProperties": False,
        "$defs": options,
    }


def _options(verb: Verb) -> dict[str, Any]:
    context = click.Context(cli)
    command = cli.get_command(context, verb.name)
    if command is None:
        raise LookupError(verb.name)
    properties = {}
    if verb.argument:
        properties[verb.argument] = {"type": "string", "minLength": 1, "description": "The repository on the Hub."}
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            name = next(opt for opt in option.opts if opt.startswith("--")).removeprefix("--")
            if name not in {*_REPORTING, *verb.filled}:
                properties[name] = {**_value(option), "description": (option.help or "").strip()}
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _value(option: click.Option) -> dict[str, Any]:
    if option.is_flag:
        # Without a --no- form there is nothing that false could say.
        return {"type": "boolean"} if option.secondary_opts else {"const": True}
    kinds: dict[type[click.ParamType[Any]], str] = {
        click.types.IntParamType: "integer",
        click.types.FloatParamType: "number",
    }
    kind = next((name for cls, name in kinds.items() if isinstance(option.type, cls)), "string")
    value: dict[str, Any] = {"type": kind}
    if isinstance(option.type, click.IntRange | click.FloatRange):
        value |= _bounds(option.type)
    if isinstance(option.type, click.Choice):
        value = {"enum": list(option.type.choices)}
    return {"type": "array", "items": value, "minItems": 1} if option.multiple else value


def _bounds(numbers: click.IntRange | click.FloatRange) -> dict[str, float]:
    bounds = {
        "exclusiveMinimum" if numbers.min_open else "minimum": numbers.min,
        "exclusiveMaximum" if numbers.max_open else "maximum": numbers.max,
    }
    return {name: bound for name, bound in bounds.items() if bound is not None}


if __name__ == "__main__":
    text = json.dumps(recipe_schema(), indent=2) + "\n"
    resource("schemas", "recipe.schema.json").write_text(text, encoding="utf-8")
