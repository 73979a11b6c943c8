"""`eaglehub init --ci`: the files people start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglehub.resources import resource
from tests.cli_runner import run

PLACES = {
    "github": ("github.yml", ".github/workflows/eaglehub.yml"),
    "gitlab": ("gitlab.yml", ".gitlab/eaglehub.yml"),
    "k8s": ("kubernetes.yaml", "eaglehub-gate.yaml"),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("system", "place"), PLACES.items())
def test_each_is_written_into_its_place(system: str, place: tuple[str, str]) -> None:
    template, path = place

    result = run("init", "--ci", system)

    assert (result.exit_code, result.stdout) == (0, f"wrote {path}\n")
    assert Path(path).read_bytes() == resource("templates", f"ci/{template}").read_bytes()


def test_nothing_is_replaced_unless_forced(here: Path) -> None:
    (here / "eaglehub-gate.yaml").write_text("mine")

    refused = run("init", "--ci", "github", "--ci", "k8s")

    assert refused.exit_code == 2
    assert "eaglehub-gate.yaml: is there already" in refused.stderr
    assert [path.name for path in here.iterdir()] == ["eaglehub-gate.yaml"]
    assert (here / "eaglehub-gate.yaml").read_text() == "mine"
    assert run("init", "--ci", "k8s", "--force").exit_code == 0
    assert (here / "eaglehub-gate.yaml").read_text() != "mine"


def test_a_recipe_is_not_lost_without_a_word(here: Path) -> None:
    for stray in (["recipe.yaml"], ["--source", "drafter"], ["--no-verify"]):
        assert run("init", "--ci", "k8s", *stray).exit_code == 2
    assert list(here.iterdir()) == []


def test_a_place_that_cannot_be_written(here: Path) -> None:
    (here / ".github").write_text("a file")

    result = run("init", "--ci", "github")

    assert result.exit_code == 4
    assert result.stderr.startswith("error: .github/workflows/eaglehub.yml: cannot write it: ")
