"""Round trips between layouts, and what a layout cannot hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from safetensors.numpy import load_file

from eaglehub.formats.spec import writable_formats
from tests.cli_runner import run
from tests.drafters import BROKEN, BUILDERS, NEEDS_TORCH, build, target_config
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

NATIVE = (
    "vllm-3",
    "vllm-3.1",
    "vllm-qwen3",
    "vllm-mla",
    "vllm-mla-shared",
    "vllm-two-layers",
    "vllm-four-aux",
    "vllm-input-norm",
)
OTHERS = [name for name in writable_formats() if name != "vllm"]

# What each layout must be able to hold, from the producers' own code; the rest it must refuse.
HOLDS = {
    "sglang": {"vllm-3", "vllm-3.1", "vllm-mla", "vllm-mla-shared", "vllm-two-layers", "vllm-four-aux"},
    "specforge": {"vllm-3", "vllm-3.1"},
    "speculators": {"vllm-3", "vllm-3.1", "vllm-qwen3", "vllm-two-layers", "vllm-four-aux", "vllm-input-norm"},
    "modelopt": {"vllm-3", "vllm-mla-shared", "vllm-two-layers", "vllm-four-aux"},
}
# What reading the layout back asks, and the answer that is true for these drafters.
ANSWERS = {
    ("specforge", "vllm-3.1"): ("--feedback", "post-norm"),
}


def canonical(name: str, folder: Path) -> Path:
    """The fixture as eaglehub writes it."""
    fixture = build(name, folder / "source")
    assert run("convert", fixture.path, folder / "vllm").exit_code == 0
    return folder / "vllm"


def content(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    tensors = load_file(folder / "model.safetensors")
    return json.loads((folder / "config.json").read_text()), {
        name: bytes(f"{array.dtype} {array.shape}", "ascii") + array.tobytes() for name, array in tensors.items()
    }


@pytest.mark.parametrize("layout", OTHERS)
@pytest.mark.parametrize("name", NATIVE)
def test_there_and_back_is_identical_or_refused(name: str, layout: str, tmp_path: Path) -> None:
    native = canonical(name, tmp_path)
    kind = "kimi_k2" if "mla" in name else "llama"
    facts = {key: json.loads((native / "config.json").read_text())[key] for key in ("vocab_size", "hidden_size")}
    facts["hidden_size"] = json.loads((native / "config.json").read_text())["target_hidden_size"]
    target = target_config(kind, tmp_path / "target", **facts)

    there = run("convert", native, tmp_path / "there", "--to", layout, "--target", target)

    if name not in HOLDS[layout]:
        assert there.exit_code == 1
        assert "EH801" in there.stdout
        assert not (tmp_path / "there").exists()
        return
    assert there.exit_code == 0, there.stdout + there.stderr
    back = run("convert", tmp_path / "there", tmp_path / "back", *ANSWERS.get((layout, name), ()))
    assert back.exit_code == 0, back.stdout + back.stderr
    config, tensors = content(native)
    config["max_position_embeddings"] = json.loads((tmp_path / "back" / "config.json").read_text())[
        "max_position_embeddings"
    ]
    assert content(tmp_path / "back") == (config, tensors)


@pytest.mark.parametrize("layout", ["specforge", "speculators", "modelopt"])
def test_a_producers_own_file_comes_back(layout: str, tmp_path: Path) -> None:
    fixture = build({"speculators": "speculators-llama"}.get(layout, layout), tmp_path / "source")
    target = target_config("llama", tmp_path / "target", vocab_size=160, hidden_size=64, num_hidden_layers=36)
    run("convert", fixture.path, tmp_path / "vllm")

    result = run("convert", tmp_path / "vllm", tmp_path / "back", "--to", layout, "--target", target)

    assert result.exit_code == 0, result.stdout
    config, tensors = content(tmp_path / "back")
    assert tensors == content(fixture.path)[1]
    nested = config.get("transformer_layer_config", {})
    for key in ("hidden_size", "vocab_size", "draft_vocab_size", "num_attention_heads", "num_hidden_layers"):
        assert fixture.config.get(key, fixture.config.get("transformer_layer_config", {}).get(key)) == config.get(
            key, nested.get(key)
        )


def test_the_file_for_sglang_serves_both_engines(tmp_path: Path) -> None:
    native = canonical("vllm-two-layers", tmp_path)

    run("convert", native, tmp_path / "out", "--to", "sglang")

    config, tensors = content(tmp_path / "out")
    ids = config["eagle_aux_hidden_state_layer_ids"]
    assert config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [value - 1 for value in ids]
    assert tensors["layers.1.hidden_norm.weight"] == tensors["layers.1.input_layernorm.weight"]


def test_converting_again_changes_nothing_and_says_so(tmp_path: Path) -> None:
    native = canonical("specforge", tmp_path)

    checked = run("convert", native, "--check")
    again = run("convert", native, tmp_path / "again", "--json")

    assert checked.exit_code == 0
    assert "nothing to convert" in checked.stdout
    assert validate(again)["status"] == "copied"
    assert {file.name: file.read_bytes() for file in (tmp_path / "again").iterdir()} == {
        file.name: file.read_bytes() for file in native.iterdir()
    }


@pytest.mark.parametrize("name", [name for name in BUILDERS if name not in (*BROKEN, *NEEDS_TORCH)])
def test_every_conversion_is_a_fixed_point(name: str, tmp_path: Path) -> None:
    fixture = build(name, tmp_path / "source")
    assert fixture.expected is not None
    run("convert", fixture.path, tmp_path / "out", *fixture.expected.options)

    result = run("convert", tmp_path / "out", "--check")

    assert result.exit_code == 0, result.stdout


def test_check_exits_with_one_when_something_would_change(tmp_path: Path) -> None:
    fixture = build("specforge", tmp_path / "source")

    result = run("convert", fixture.path, "--check")

    assert result.exit_code == 1
    assert "would change" in result.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["source"]


def test_speculators_needs_to_know_its_verifier(tmp_path: Path) -> None:
    native = canonical("vllm-3", tmp_path)

    result = run("convert", native, tmp_path / "out", "--to", "speculators")

    assert result.exit_code == 1
    assert "--target" in result.stdout
