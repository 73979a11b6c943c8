"""The pages: up to date with what they are made of, with links that lead somewhere, and a site that stands alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from jsonschema import Draft202012Validator

from docs.generate import pages
from eaglehub.resources import resource
from tests.docs.console import PAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

_LINK = re.compile(r"\]\((?!http|#)([^)#]+)")
_LOADED = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")


def test_generated_pages_are_up_to_date() -> None:
    stale = [page.name for page, text in pages().items() if page.read_text("utf-8") != text]
    assert not stale, "run: python -m docs.generate"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.slow
def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed (pip install -e '.[docs]')")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    made = list(tmp_path.rglob("*.html"))
    assert len(made) > len(list((ROOT / "docs").glob("*.md")))
    assert {page.name: _LOADED.findall(page.read_text("utf-8")) for page in made} == {page.name: [] for page in made}


@pytest.mark.parametrize(("name", "schema"), [("recipes", "recipe"), ("adding-a-producer", "format-spec")])
def test_examples_in_yaml_fit_their_schema(name: str, schema: str) -> None:
    validator = Draft202012Validator(json.loads(resource("schemas", f"{schema}.schema.json").read_bytes()))
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    for example in re.findall(r"^```yaml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        validator.validate(yaml.safe_load(example))


def test_the_readme_says_of_engines_what_the_reference_says() -> None:
    reference = (ROOT / "docs/reference/engines.md").read_text("utf-8").splitlines()
    table = (ROOT / "README.md").read_text("utf-8").partition("| a drafter with ")[2].partition("\n\n")[0]
    head, _, *rows = f"| a drafter with {table}".splitlines()

    assert len(rows) > 4
    for row in (head, *rows):
        assert row.replace("q/k norms (qwen3)", "qwen3 drafter (q/k norms)") in reference
