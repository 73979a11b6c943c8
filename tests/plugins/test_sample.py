"""The sample plugin: its format is read and converted, its rule checked, shown and selected."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from safetensors.numpy import load_file

from eaglehub.resources import resource
from tests.drafters import BUILDERS
from tests.drafters.source import Source, write
from tests.plugins.install import SAMPLE, install_sample, run_with

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {"layers.0.": "draft.block.0.", "fc.": "draft.fuse.", "norm.": "draft.final.", "lm_head.": "draft.head."}


def acme(source: Source) -> Source:
    """A drafter in vLLM's layout, as Acme's trainer would have saved it."""
    tensors = {}
    for name, values in source.tensors.items():
        start = next((start for start in NAMES if name.startswith(start)), name)
        tensors["draft.id_offsets" if name == "d2t" else name.replace(start, NAMES.get(start, start), 1)] = values
    config = {key: value for key, value in source.config.items() if key != "eagle_config"}
    return replace(source, config=config | {"acme": {"tapped_layers": [1, 5, 8]}}, tensors=tensors, expected=None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    install_sample(folder)
    return folder


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    source: Source = BUILDERS["vllm-3"].args[0]()  # type: ignore[attr-defined]
    write(acme(source), tmp_path / "drafter")
    return tmp_path / "drafter"


def test_its_format_is_converted(site: Path, drafter: Path, tmp_path: Path) -> None:
    done = run_with(site, "convert", drafter, tmp_path / "out")

    assert done.returncode == 0, done.stderr
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["eagle_aux_hidden_state_layer_ids"] == [2, 6, 9]
    before = load_file(drafter / "model.safetensors")
    after = load_file(tmp_path / "out" / "model.safetensors")
    assert after["fc.weight"].tobytes() == before["draft.fuse.weight"].tobytes()
    assert not any(name.startswith("draft.") for name in after)


def test_its_rule_finds(site: Path, drafter: Path) -> None:
    done = run_with(site, "validate", drafter, "--json", "--engine", "none")

    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    Draft202012Validator(json.loads(resource("schemas", "report-validate.schema.json").read_bytes())).validate(report)
    [judged] = report["drafters"]
    assert judged["format"] == "acme"
    [finding] = [finding for finding in judged["findings"] if finding["code"] == "ACME901"]
    assert (drafter / "config.json").read_text().splitlines()[finding["line"] - 1].startswith('  "acme"')
    assert finding["fix"] == "write the run's id as acme.run into config.json"


@pytest.mark.parametrize(("options", "found"), [(("--select", "ACME"), True), (("--ignore", "ACME9"), False)])
def test_its_codes_are_selected_like_any(site: Path, drafter: Path, options: tuple[str, ...], found: bool) -> None:
    assert ("ACME901" in run_with(site, "validate", drafter, *options).stdout) is found


def test_its_rule_is_explained(site: Path) -> None:
    shown = run_with(site, "explain", "ACME901", "--json")

    [rule] = json.loads(shown.stdout)["rules"]
    assert (rule["family"], rule["title"]) == ("Publish hygiene", "no training run is named")


def test_env_names_it(site: Path) -> None:
    assert {"name": "eaglehub-acme", "version": "0.1.0"} in json.loads(run_with(site, "env", "--json").stdout)[
        "plugins"
    ]


@pytest.mark.slow
def test_pip_installs_it(tmp_path: Path, drafter: Path) -> None:
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", tmp_path / "site", SAMPLE], check=True
    )

    assert "ACME901" in run_with(tmp_path / "site", "validate", drafter).stdout
