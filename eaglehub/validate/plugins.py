"""Rules of other people: modules with `RULES` and `CHECKS`, as those of this room have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglehub.errors import EaglehubError
from eaglehub.plugins import RULES, load_plugins
from eaglehub.validate.rule import Check, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.plugins import Plugin
    from eaglehub.validate.rule import Hit
    from eaglehub.validate.subject import Subject

# Codes that begin with EH are eaglehub's: a later release may need any of them.
_CODE = re.compile(r"(?!EH)[A-Z]{2,8}[1-9]\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class PluginRules:
    """What all plugins add, sorted by code."""

    rules: tuple[Rule, ...] = ()
    checks: tuple[Check, ...] = ()


def plugin_rules() -> PluginRules:
    """The rules of all plugins, and their checks, whose faults will name the plugin.

    Raises:
        EnvironmentProblem: a plugin cannot be used.
    """
    found: dict[str, Rule] = {}
    checks: list[Check] = []
    for plugin in load_plugins(RULES):
        rules = _read(plugin)
        if taken := found.keys() & rules.keys():
            raise plugin.problem(f"another plugin has a rule {min(taken)} already")
        found |= rules
        checks += [_guarded(plugin, check, frozenset(rules)) for check in plugin.module.CHECKS]
    return PluginRules(tuple(found[code] for code in sorted(found)), tuple(checks))


def _read(plugin: Plugin) -> dict[str, Rule]:
    """A plugin's rules by code."""
    for name, kind in (("RULES", Rule), ("CHECKS", Check)):
        members = getattr(plugin.module, name, None)
        if not isinstance(members, tuple) or not all(isinstance(member, kind) for member in members):
            raise plugin.problem(f"its {name} is no tuple of {kind.__name__}")
    rules = {rule.code: rule for rule in plugin.module.RULES}
    if len(rules) < len(plugin.module.RULES):
        raise plugin.problem("two of its rules have the same code")
    if strange := next((code for code in rules if not _CODE.fullmatch(code)), None):
        raise plugin.problem(f"{strange!r} is no code for its rules: letters of its own, not EH, and three digits")
    return rules


def _guarded(plugin: Plugin, check: Check, codes: frozenset[str]) -> Check:
    """The check, whose own faults are told as such and hide nothing that others find."""
    name = getattr(check.function, "__name__", "of no name")

    def function(subject: Subject) -> Iterator[Hit]:
        try:
            hits = list(check.function(subject))
            strange = {hit.code for hit in hits} - codes
        except EaglehubError:
            raise
        except Exception as error:
            raise plugin.problem(f"its check {name} failed: {type(error).__name__}: {error}") from error
        if strange:
            raise plugin.problem(f"its check {name} found {min(strange)}, which is none of its rules")
        yield from hits

    return Check(function, check.needs)
