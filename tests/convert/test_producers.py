"""Every producer's layout becomes vLLM's, bit for bit, and what is broken is refused by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from safetensors.numpy import load_file

from eaglehub.resources import resource
from tests.cli_runner import run
from tests.drafters import BROKEN, BUILDERS, NEEDS_TORCH, Built, Expected, build, target_config
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

SOUND = [name for name in BUILDERS if name not in BROKEN]


def built(name: str, folder: Path) -> tuple[Built, Expected]:
    if name in NEEDS_TORCH:
        pytest.importorskip("torch", reason="a pickle")
    fixture = build(name, folder)
    assert fixture.expected is not None
    return fixture, fixture.expected


def config_of(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config


def at(config: dict[str, Any], path: str) -> Any:
    value: Any = config
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


@pytest.mark.parametrize("name", SOUND)
def test_converts_to_the_canonical_form(name: str, tmp_path: Path) -> None:
    fixture, expected = built(name, tmp_path / "source")
    out = tmp_path / "out"

    result = run("convert", fixture.path, out, *expected.options, "--json")

    assert result.exit_code == 0, result.stdout + result.stderr
    report = validate(result)
    assert report["source"]["format"] == expected.producer
    config = config_of(out)
    assert {key: config.get(key) for key in expected.config} == expected.config
    assert {path: at(config, path) for path in expected.absent} == dict.fromkeys(expected.absent)
    tensors = load_file(out / "model.safetensors")
    assert set(expected.tensors) <= set(tensors)
    for key, array in tensors.items():
        wanted = expected.tensors[key] if key in expected.tensors else expected.optional[key]
        assert array.dtype == wanted.dtype
        assert array.tobytes() == wanted.tobytes(), key


@pytest.mark.parametrize("name", SOUND)
def test_the_output_fits_its_schemas(name: str, tmp_path: Path) -> None:
    fixture, expected = built(name, tmp_path / "source")
    out = tmp_path / "out"
    run("convert", fixture.path, out, *expected.options)

    for file, schema in {"config.json": "native-config", "eaglehub.json": "provenance"}.items():
        rules = json.loads(resource("schemas", f"{schema}.schema.json").read_bytes())
        document = json.loads((out / file).read_text())
        Draft202012Validator(rules).validate(document)
        assert str(tmp_path) not in json.dumps(document)


@pytest.mark.parametrize("name", SOUND)
def test_warns_of_what_is_uncertain(name: str, tmp_path: Path) -> None:
    fixture, expected = built(name, tmp_path / "source")

    report = validate(run("convert", fixture.path, "--dry-run", *expected.options, "--json"))

    warnings = [item for item in report["findings"] if item["severity"] == "warning"]
    text = " ".join(f"{item['where']} {item['message']}".lower() for item in warnings)
    assert [word for word in expected.warns if word not in text] == []


@pytest.mark.parametrize("name", SOUND)
def test_accounts_for_every_tensor_and_config_key(name: str, tmp_path: Path) -> None:
    fixture, expected = built(name, tmp_path / "source")

    report = validate(run("convert", fixture.path, "--dry-run", *expected.options, "--json"))

    plan = report["plan"]
    used = {tensor["source"] for tensor in plan["tensors"]}
    dropped = {item["name"] for item in plan["dropped"]}
    assert set(fixture.tensors) == (used - {None}) | (dropped & set(fixture.tensors))
    assert set(expected.dropped) <= dropped
    assert [edit["key"] for edit in plan["config_edits"] if not edit["reason"]] == []


@pytest.mark.parametrize(
    "name", [name for name in SOUND if name in ("specforge-3.1", "speculators-no-residual-key", "nested-ids-unknown")]
)
def test_asks_instead_of_guessing(name: str, tmp_path: Path) -> None:
    fixture, expected = built(name, tmp_path / "source")
    out = tmp_path / "out"

    result = run("convert", fixture.path, out)

    assert expected.refused_without_options
    assert result.exit_code == 1
    assert expected.options[0] in result.stdout
    assert not out.exists()


@pytest.mark.parametrize("name", [name for name in SOUND if name not in NEEDS_TORCH])
def test_refuses_without_answers_exactly_what_is_ambiguous(name: str, tmp_path: Path) -> None:
    fixture, expected = built(name, tmp_path / "source")

    result = run("convert", fixture.path, "--dry-run")

    assert result.exit_code == int(expected.refused_without_options)


@pytest.mark.parametrize("name", BROKEN)
def test_refuses_what_is_broken_and_names_it(name: str, tmp_path: Path) -> None:
    builder, text = BROKEN[name]
    fixture = builder(tmp_path / "source")
    out = tmp_path / "out"

    result = run("convert", fixture.path, out)

    assert result.exit_code in (1, 3)
    errors = [line for line in (result.stdout + result.stderr).splitlines() if line.startswith("error")]
    assert any(text.lower() in line.lower() for line in errors), errors
    assert not out.exists()


def test_a_target_settles_ids_that_reach_its_last_layer(tmp_path: Path) -> None:
    fixture, expected = built("modelopt-gpt-oss-v3", tmp_path / "source")
    target = target_config(str(expected.target), tmp_path / "target")

    result = run("convert", fixture.path, tmp_path / "out", "--target", target)

    assert result.exit_code == 0, result.stdout
    assert config_of(tmp_path / "out")["eagle_aux_hidden_state_layer_ids"] == [24, 30, 36]


def test_a_target_writes_the_default_ids_out(tmp_path: Path) -> None:
    fixture, _ = built("automodel", tmp_path / "source")
    target = target_config("llama", tmp_path / "target")

    run("convert", fixture.path, tmp_path / "out", "--target", target)

    assert config_of(tmp_path / "out")["eagle_aux_hidden_state_layer_ids"] == [2, 6, 9]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--aux-layer-ids", "3,5,8"), [3, 5, 8]),
        (("--aux-layer-ids", "3,5,8", "--aux-id-convention", "out"), [4, 6, 9]),
    ],
)
def test_given_layer_ids_win(options: tuple[str, ...], ids: list[int], tmp_path: Path) -> None:
    fixture, _ = built("specforge", tmp_path / "source")

    assert run("convert", fixture.path, tmp_path / "out", *options).exit_code == 0

    assert config_of(tmp_path / "out")["eagle_aux_hidden_state_layer_ids"] == ids


def test_feedback_contradicting_a_known_source_points_to_upgrade(tmp_path: Path) -> None:
    fixture, _ = built("vllm-3", tmp_path / "source")

    result = run("convert", fixture.path, tmp_path / "out", "--feedback", "post-norm")

    assert result.exit_code == 2
    assert "upgrade" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_given_rope_base_is_written_and_recorded(tmp_path: Path) -> None:
    fixture, _ = built("angelslim", tmp_path / "source")

    run("convert", fixture.path, tmp_path / "out", "--rope-theta", "10000")

    assert config_of(tmp_path / "out")["rope_theta"] == 10000.0
    resolutions = json.loads((tmp_path / "out" / "eaglehub.json").read_text())["resolutions"]
    assert ("rope base", 10000.0, "option") in [(item["question"], item["answer"], item["by"]) for item in resolutions]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_casts_when_told(dtype: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the reference for rounding")
    fixture, expected = built("vllm-float32", tmp_path / "source")

    run("convert", fixture.path, tmp_path / "out", "--dtype", dtype)

    from safetensors.torch import load_file as load_torch

    assert config_of(tmp_path / "out")["torch_dtype"] == dtype
    for name, tensor in load_torch(tmp_path / "out" / "model.safetensors").items():
        source = torch.from_numpy(np.array(expected.tensors[name]))
        assert torch.equal(tensor, source.to(getattr(torch, dtype)) if source.is_floating_point() else source), name
