"""The catalogue, the document made of it, and the commands that show it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eaglehub.validate import CATALOGUE, Rule
from eaglehub.validate.document import rules_document
from eaglehub.validate.rule import FAMILIES, Need
from eaglehub.validate.rules import CHECKS
from tests.cli_runner import run
from tests.reports import validate

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("rule", CATALOGUE.values(), ids=lambda rule: rule.code)
def test_a_rule_says_everything(rule: Rule) -> None:
    assert re.fullmatch(r"EH[1-9]\d{2}", rule.code)
    assert rule.code[2] in FAMILIES
    assert rule.title == rule.title.strip(" .")
    assert rule.why.endswith(".")
    assert not rule.fix.endswith(".")
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", report) for report in rule.reports)


def test_codes_ascend() -> None:
    assert list(CATALOGUE) == sorted(CATALOGUE)


def test_checks_need_what_their_rules_need() -> None:
    """Everything that a check asks for can be missing, and is then named as a reason."""
    assert {need for check in CHECKS for need in check.needs} <= {
        need for rule in CATALOGUE.values() for need in rule.needs
    }
    assert all(need.value for need in Need)


def test_the_document_is_up_to_date() -> None:
    assert (ROOT / "docs" / "rules.md").read_text(encoding="utf-8") == rules_document(), (
        "run: python -m eaglehub.validate.document > docs/rules.md"
    )


def test_rules_lists_all() -> None:
    result = run("rules")
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(CATALOGUE)
    report = validate(run("rules", "--json"))
    assert [rule["code"] for rule in report["rules"]] == list(CATALOGUE)


def test_explain() -> None:
    result = run("explain", "EH204")
    assert result.exit_code == 0
    assert CATALOGUE["EH204"].title in result.stdout
    assert "fix: train the drafter with silu" in result.stdout
    [rule] = validate(run("explain", "EH711", "--json"))["rules"]
    assert rule["reports"][0] == "https://github.com/vllm-project/vllm/issues/50170"


@pytest.mark.parametrize("command", [("explain", "EH999"), ("validate", ".", "--select", "X"), ("explain", "")])
def test_unknown_rules(command: tuple[str, ...]) -> None:
    result = run(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no rule is called" in result.stderr
    assert "eaglehub rules" in result.stderr
