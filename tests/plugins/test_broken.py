"""A plugin that cannot be used: one line that names it, exit code 4, whatever is wrong with it."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest

from eaglehub import plugins
from eaglehub.errors import EnvironmentProblem
from eaglehub.formats.spec import load_formats
from eaglehub.validate.plugins import plugin_rules
from tests.cli_runner import run
from tests.drafters import build
from tests.plugins.install import run_with, write_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = "from eaglehub.report.findings import Severity\nfrom eaglehub.validate.rule import Check, Hit, Rule\n"
RULE = "Rule(code={code!r}, title='t', severity=Severity.ERROR, why='w.', fix='f')"
SPEC = {"id": "odd", "title": "Odd", "about": "odd", "tensors": [{"same": ["fc.weight"]}]}


def rules(code: str, check: str = "yield from ()") -> str:
    rule = RULE.format(code=code)
    return f"{HEAD}RULES = ({rule},)\ndef look(subject):\n    {check}\nCHECKS = (Check(look),)\n"


MODULES = {
    "raise ValueError('what a pity')": "cannot be imported: ValueError: what a pity",
    "import a_package_that_is_not_there": "cannot be imported: ModuleNotFoundError",
    "from eaglehub.validate.rule import Rule\nRULES = [Rule]": "its RULES is no tuple of Rule",
    HEAD + "RULES = ()": "its CHECKS is no tuple of Check",
    rules("EH950"): "'EH950' is no code for its rules",
    rules("ODD01"): "'ODD01' is no code for its rules",
    rules("ODD901").replace(",)\ndef", f", {RULE.format(code='ODD901')})\ndef"): "two of its rules have the same code",
}
SPECS = {
    "nothing": (None, "no package with *.yaml files in it"),
    "no-yaml": ("{", "odd.yaml: it is no YAML"),
    "incomplete": (json.dumps({"id": "odd"}), "odd.yaml: $: 'title' is a required property"),
    "taken": (json.dumps(SPEC | {"id": "vllm"}), "there is a format 'vllm' already"),
    "holes": (json.dumps(SPEC | {"tensors": [{"from": "a.{i}", "to": "layers.{n}"}]}), "differ in their holes"),
    "unknown-hole": (json.dumps(SPEC | {"tensors": [{"from": "a.{x}", "to": "b.{x}"}]}), "differ in their holes"),
}


def install(site: Path, name: str, group: str, text: str) -> None:
    package = site / name.replace("-", "_")
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(text)
    write_metadata(site, name, {group: {"odd": package.name}})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on this process's path; what is imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    forget()
    yield folder
    forget()


def forget() -> None:
    for cached in (plugins._announced, plugins.load_plugins, load_formats):
        cached.cache_clear()
    for name in [name for name in sys.modules if name in ("eaglehub_odd", "eaglehub_other")]:
        del sys.modules[name]


@pytest.mark.parametrize(("text", "told"), MODULES.items(), ids=MODULES.values())
def test_rules(text: str, told: str, site: Path) -> None:
    install(site, "eaglehub-odd", "eaglehub.rules", text)

    with pytest.raises(EnvironmentProblem, match=rf"^plugin eaglehub-odd 0\.1\.0: .*{re.escape(told)}"):
        plugin_rules()


@pytest.mark.parametrize(("text", "told"), SPECS.values(), ids=SPECS)
def test_formats(text: str | None, told: str, site: Path) -> None:
    install(site, "eaglehub-odd", "eaglehub.formats", "")
    if text is not None:
        (site / "eaglehub_odd" / "odd.yaml").write_text(text)

    result = run("formats")

    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.startswith("error: plugin eaglehub-odd 0.1.0: ")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_two_plugins_with_the_same_code(site: Path) -> None:
    for name in ("eaglehub-odd", "eaglehub-other"):
        install(site, name, "eaglehub.rules", rules("ODD901"))

    with pytest.raises(EnvironmentProblem, match="another plugin has a rule ODD901 already"):
        plugin_rules()


def test_the_command_says_it_in_one_line(tmp_path: Path) -> None:
    install(tmp_path / "site", "eaglehub-odd", "eaglehub.rules", "raise ValueError('what a pity')")

    done = run_with(tmp_path / "site", "rules")

    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (
        "error: plugin eaglehub-odd 0.1.0: eaglehub_odd cannot be imported: ValueError: what a pity"
        " (mend or uninstall it)\n"
    )
    assert run_with(tmp_path / "site", "--help").returncode == 0


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("return [1 / 0]", "its check look failed: ZeroDivisionError"),
        ("return 3", "its check look failed: TypeError"),
        ("yield Hit('EH901', 'm')", "its check look found EH901, which is none of its rules"),
    ],
)
def test_checks(check: str, told: str, site: Path) -> None:
    install(site, "eaglehub-odd", "eaglehub.rules", rules("ODD901", check))
    [guarded] = plugin_rules().checks

    with pytest.raises(EnvironmentProblem, match=told):
        list(guarded.function(None))  # type: ignore[arg-type]


def test_a_failing_check_hides_nothing(tmp_path: Path) -> None:
    """It is a finding like a missing package, and what eaglehub itself finds is there too."""
    install(tmp_path / "site", "eaglehub-odd", "eaglehub.rules", rules("ODD901", "return [1 / 0]"))
    drafter = build("vllm-3", tmp_path / "drafter").path
    (drafter / "code.py").touch()

    done = run_with(tmp_path / "site", "validate", drafter)

    assert done.returncode == 4
    assert "error EH111 plugin eaglehub-odd 0.1.0: its check look failed: ZeroDivisionError" in done.stdout
    assert "error EH905" in done.stdout
