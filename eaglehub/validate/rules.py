"""The catalogue: every rule and every check of all families, and of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.errors import UsageProblem
from eaglehub.validate import config, engine, files, publish, semantics, target, tensors, values, vocab
from eaglehub.validate.plugins import plugin_rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eaglehub.validate.rule import Check, Rule

_FAMILIES = (files, config, tensors, vocab, values, target, semantics, engine, publish)

BUILT_IN: dict[str, Rule] = {rule.code: rule for family in _FAMILIES for rule in family.RULES}
"""Every code that any part of eaglehub raises."""

_PLUGINS = plugin_rules()

CATALOGUE: dict[str, Rule] = BUILT_IN | {rule.code: rule for rule in _PLUGINS.rules}
"""Every code that a finding can have."""

CHECKS: tuple[Check, ...] = (*(check for family in _FAMILIES for check in family.CHECKS), *_PLUGINS.checks)


def matching(selectors: Iterable[str], option: str) -> frozenset[str]:
    """The codes that the selectors name: whole codes (`EH204`) or the start of some (`EH2`).

    Raises:
        UsageProblem: a selector names no rule.
    """
    chosen: set[str] = set()
    for selector in selectors:
        found = {code for code in CATALOGUE if code.startswith(selector)} if selector else set()
        if not found:
            raise UsageProblem(f"no rule is called {selector!r}", where=option, fix="see eaglehub rules")
        chosen |= found
    return frozenset(chosen)
