"""Recipes with mistakes are refused before any work, at their line."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eaglehub.cli.recipe_schema import recipe_schema
from eaglehub.resources import resource
from tests.cli_runner import run
from tests.drafters import target_config

if TYPE_CHECKING:
    from tests.recipe.conftest import Kitchen

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/*.yaml"))
HEAD = "source: drafter\n"
MISTAKES = {
    "unknown key": (f"{HEAD}sauce: x\nsteps: [convert: {{}}]\n", 2, "sauce"),
    "unknown command": (f"{HEAD}steps:\n- bake: {{}}\n", 3, "steps.0.bake"),
    "unknown option": (f"{HEAD}steps:\n- convert:\n    bogus: 1\n", 4, "steps.0.convert.bogus"),
    "wrong type": (f"{HEAD}steps:\n- upgrade:\n    max-tokens: many\n", 4, "steps.0.upgrade.max-tokens"),
    "no whole number": (f"{HEAD}steps:\n- evaluate:\n    limit: 1.0\n", 4, "evaluate.limit: 1.0 is not of type"),
    "too small a number": (f"{HEAD}steps:\n- verify:\n    timeout: 0\n", 4, "steps.0.verify.timeout: 0 is"),
    "too large a number": (f"{HEAD}steps:\n- evaluate:\n    depth: 9\n", 4, "steps.0.evaluate.depth: 9 is"),
    "wrong choice": (f"{HEAD}steps:\n- convert:\n    to: tf\n", 4, "steps.0.convert.to"),
    "a flag that is off": (f"{HEAD}steps:\n- validate:\n    strict: false\n", 4, "steps.0.validate.strict"),
    "steps are no list": (f"{HEAD}steps: convert\n", 2, "steps"),
    "no steps": (HEAD, 1, "steps"),
    "no source": ("steps:\n- convert: {}\n", 1, "source"),
    "missing source": ("source: ./nowhere\nsteps:\n- convert: {}\n", 1, "./nowhere does not exist"),
    "missing prompts": (f"{HEAD}prompts: none.jsonl\nsteps:\n- evaluate: {{}}\n", 2, "none.jsonl does not exist"),
    "missing target": (f"{HEAD}steps:\n- convert: {{target: /no/where}}\n", 3, "/no/where does not exist"),
    "two commands": (f"{HEAD}steps:\n- convert: {{}}\n  validate: {{}}\n", 3, "a step has one command"),
    "no command": (f"{HEAD}steps:\n- name: x\n", 3, "a step has one command"),
    "two steps of one name": (f"{HEAD}steps:\n- validate: {{}}\n- validate: {{}}\n", 3, "two steps"),
    "impossible order": (f"{HEAD}steps:\n- upgrade: {{}}\n- convert: {{}}\n", 4, "convert cannot come after upgrade"),
    "after publishing": (f"{HEAD}steps:\n- publish: {{repo: a/b}}\n- validate: {{}}\n", 4, "cannot come after publish"),
    "no repository": (f"{HEAD}steps:\n- publish: {{}}\n", 3, "repo is missing"),
    "no licence": (f"{HEAD}steps:\n- publish: {{repo: a/b}}\n", 3, "license is missing: nothing says under which"),
    "unset variable": (f"{HEAD}steps:\n- publish: {{repo: '${{NOT_SET_ANYWHERE}}/b'}}\n", 3, "NOT_SET_ANYWHERE"),
    "a key twice": (f"{HEAD}{HEAD}steps: [convert: {{}}]\n", 2, "it is there twice"),
    "no YAML": ("source: [\n", 2, "it is no YAML"),
    "a date that is none": (f"{HEAD}prompts: 2026-13-45\nsteps: [convert: {{}}]\n", 2, "is no timestamp"),
    "a number that is none": (f"{HEAD}prompts: 0x_\nsteps: [convert: {{}}]\n", 2, "'0x_' is no int"),
    "an alias of itself": ("source: &a [*a]\nsteps: [convert: {}]\n", None, "nested too deeply"),
    "aliases for billions": (
        "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]\n" for n in range(10)), None, "too large"
    ),
    "a NUL": (f'{HEAD}work: "a\\0b"\nsteps: [convert: {{}}]\n', 2, "work: holds a character that no command line can"),
    "a name that is no text": (f"{HEAD}steps: [convert: {{}}]\nmatrix:\n  1: {{}}\n", 3, "1 is not of type 'string'"),
    "a name as long as a path": (f"{HEAD}steps: [convert: {{}}]\nmatrix:\n  {'a' * 300}: {{}}\n", 3, "does not match"),
    "missing baseline": (f"{HEAD}steps:\n- verify: {{baseline: ./old.json}}\n", 3, "./old.json does not exist"),
    "missing drafter": (f"{HEAD}steps:\n- evaluate: {{compare: ./other}}\n", 3, "./other does not exist"),
    "somebody unknown": ("source: ~nobody-of-that-name/x\nsteps: [convert: {}]\n", 1, "does not exist"),
    "nothing at all": ("", 1, "is not of type 'object'"),
    "unknown step in the matrix": (
        f"{HEAD}steps: [convert: {{}}]\nmatrix:\n  a:\n    steps: {{bake: {{}}}}\n", 5, "there is no such step"
    ),
    "unknown option in the matrix": (
        f"{HEAD}steps: [convert: {{}}]\nmatrix:\n  a:\n    steps:\n      convert:\n        bogus: 1\n", 7, "bogus"
    ),
    "unknown entry to come after": (
        "steps: [convert: {}]\nmatrix:\n  a: {after: b}\n", 3, "there is no b in the matrix"
    ),
    "source and after": (
        "steps: [convert: {}]\nmatrix:\n  b: {source: drafter}\n  a: {after: b, source: drafter}\n", 4, "at once"
    ),
    "a circle": (
        "steps: [validate: {}]\nmatrix:\n  a: {after: b}\n  b: {after: a}\n", None, "goes in a circle"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_before_any_work(kitchen: Kitchen, name: str) -> None:
    text, line, what = MISTAKES[name]
    kitchen.recipe.write_text(text)
    result = kitchen.run()
    assert result.exit_code == 3
    assert len(result.stderr.splitlines()) == 1
    assert what in result.stderr
    assert f"recipe.yaml:{line or ''}" in result.stderr
    assert not (kitchen.folder / "work").exists()


@pytest.mark.parametrize(
    "setting", ["x", "=1", "source.x=1", "a..b=1", "steps.x=1", "source=[", "validate.bogus=1", "source=0x_"]
)
def test_a_setting_that_makes_no_sense(kitchen: Kitchen, setting: str) -> None:
    result = kitchen.run("--set", setting)
    assert result.exit_code in (2, 3)
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_recipe(tmp_path: Path) -> None:
    assert run("run", tmp_path / "none.yaml").exit_code == 3


def test_an_unknown_step(kitchen: Kitchen) -> None:
    assert kitchen.run("--from-step", "bake").exit_code == 2
    assert kitchen.run("--to-step", "bake").exit_code == 2


def test_the_schema_is_that_of_the_commands() -> None:
    """`python -m eaglehub.cli.recipe_schema` writes it."""
    assert json.loads(resource("schemas", "recipe.schema.json").read_bytes()) == recipe_schema()


def test_an_unwritten_recipe_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("mine")
    monkeypatch.setattr(Path, "write_bytes", full)

    result = run("init", recipe, "--force")

    assert result.exit_code == 4
    assert "cannot write it: No space left" in result.stderr
    assert recipe.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [recipe]


def test_the_licence_is_the_source_s_where_its_card_says_so(kitchen: Kitchen) -> None:
    kitchen.write("source: drafter\nsteps: [publish: {repo: me/mine}]\n")
    (kitchen.folder / "drafter" / "README.md").write_text("---\nlicense: mit\n---\nMine.\n")
    assert kitchen.run("--plan").exit_code == 0


def test_init_writes_a_recipe_that_is_one(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kitchen.folder)
    asked = run(
        "init", "new.yaml", "--source", "drafter", "--target", "some/target", "--repo", "me/mine", "--license", "mit"
    )
    assert asked.exit_code == 0, asked.stderr
    planned = run("run", "new.yaml", "--plan", "--json")
    assert planned.exit_code == 0, planned.stderr
    names = [step["name"] for step in planned.json()["chains"][0]["steps"]]
    assert names == ["convert", "upgrade", "finetune", "validate", "verify", "publish"]
    assert run("init", "new.yaml").exit_code == 2
    assert run("init", "new.yaml", "--force").exit_code == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_examples_are_recipes(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_USER", "me")
    for made in ("models/target", "models/drafter", "work/eagle-3/drafter/finetune/drafter"):  # by what runs before
        (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
        target_config("llama", tmp_path / made)
    (tmp_path / "models" / "prompts.jsonl").write_text('{"prompt": "Why?"}\n')
    (tmp_path / path.name).write_bytes(path.read_bytes())
    result = run("run", tmp_path / path.name, "--plan", "--json")
    assert result.exit_code == 0, result.stderr
    assert {step["status"] for step in result.json()["chains"][0]["steps"]} == {"would run"}
