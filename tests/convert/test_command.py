"""How `eaglehub convert` behaves around a conversion: files, destinations, refusals, interruptions."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from safetensors import safe_open

from tests.cli_runner import run
from tests.drafters import BROKEN, build, target_config
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    return build("specforge", tmp_path / "drafter").path


def test_companions_are_copied_and_code_is_not(drafter: Path, tmp_path: Path) -> None:
    kept = {"tokenizer.json": "{}", "LICENSE": "Apache", "README.md": "# card", "chat_template.jinja": "{{ x }}"}
    left = {"modeling_eagle.py": "import os", "training_args.bin": "x", "adapter_model.safetensors": "x"}
    for name, text in (kept | left).items():
        (drafter / name).write_text(text)

    report = validate(run("convert", drafter, tmp_path / "out", "--json"))

    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == set(kept) | {"config.json", "model.safetensors", "eaglehub.json"}
    assert {item["name"] for item in report["plan"]["dropped"]} >= set(left)


def test_auto_map_never_survives(drafter: Path, tmp_path: Path) -> None:
    config = json.loads((drafter / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "modeling_eagle.Eagle"}
    (drafter / "config.json").write_text(json.dumps(config))

    result = run("convert", drafter, tmp_path / "out")

    assert "EH901" in result.stdout
    assert "auto_map" not in json.loads((tmp_path / "out" / "config.json").read_text())


def test_provenance_names_the_source_and_its_hashes(drafter: Path, tmp_path: Path) -> None:
    run("convert", drafter, tmp_path / "out")

    document = json.loads((tmp_path / "out" / "eaglehub.json").read_text())

    sums = subprocess.run(["sha256sum", drafter / "model.safetensors"], capture_output=True, text=True, check=True)
    assert document["source"]["name"] == "drafter"
    assert document["source"]["files"]["model.safetensors"] == sums.stdout.split()[0]
    assert document["detection"]["format"] == "specforge"


def test_two_runs_give_the_same_bytes(drafter: Path, tmp_path: Path) -> None:
    for out in ("a", "b"):
        run("convert", drafter, tmp_path / out)

    files = [{file.name: file.read_bytes() for file in (tmp_path / out).iterdir()} for out in ("a", "b")]

    assert files[0] == files[1]


def test_an_existing_output_needs_force(drafter: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("convert", drafter, out)
    before = (out / "config.json").read_bytes()

    refused = run("convert", drafter, out, "--rope-theta", "5")
    forced = run("convert", drafter, out, "--rope-theta", "5", "--force")

    assert (refused.exit_code, forced.exit_code) == (2, 0)
    assert "--force" in refused.stderr
    assert (out / "config.json").read_bytes() != before


def test_the_source_is_never_replaced(drafter: Path) -> None:
    before = {file.name: file.read_bytes() for file in drafter.iterdir()}

    result = run("convert", drafter, drafter, "--force")

    assert result.exit_code == 2
    assert {file.name: file.read_bytes() for file in drafter.iterdir()} == before


def test_shards_hold_the_same_tensors(drafter: Path, tmp_path: Path) -> None:
    run("convert", drafter, tmp_path / "whole")

    result = run("convert", drafter, tmp_path / "shards", "--max-shard-size", "20KB")

    assert result.exit_code == 0
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    assert run("diff", tmp_path / "whole", tmp_path / "shards").exit_code == 0


def test_a_dry_run_shows_every_operation_and_writes_nothing(drafter: Path, tmp_path: Path) -> None:
    result = run("convert", drafter, tmp_path / "out", "--dry-run")

    assert result.exit_code == 0
    assert "from midlayer.self_attn.q_proj.weight" in result.stdout
    assert "added [2, 18, 34]" in result.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["nan-lm-head", "nan-norm", "inf-q-proj"])
def test_broken_values_leave_nothing_behind(name: str, tmp_path: Path) -> None:
    builder, tensor = BROKEN[name]
    fixture = builder(tmp_path / "source")

    result = run("convert", fixture.path, tmp_path / "out")

    assert result.exit_code == 1
    assert any("EH501" in line and tensor in line for line in result.stdout.splitlines())
    assert [file.name for file in tmp_path.iterdir()] == ["source"]


def test_the_target_is_checked(drafter: Path, tmp_path: Path) -> None:
    target = target_config("llama", tmp_path / "target", vocab_size=999)

    result = run("convert", drafter, tmp_path / "out", "--target", target)

    assert result.exit_code == 1
    assert "EH602" in result.stdout


def test_positions_are_raised_to_the_targets(drafter: Path, tmp_path: Path) -> None:
    facts = {"vocab_size": 160, "hidden_size": 64, "num_hidden_layers": 36, "max_position_embeddings": 131072}
    target = target_config("llama", tmp_path / "target", **facts)

    run("convert", drafter, tmp_path / "out", "--target", target)

    assert json.loads((tmp_path / "out" / "config.json").read_text())["max_position_embeddings"] == 131072


@pytest.mark.parametrize(
    ("damage", "exit_code", "words"),
    [
        (lambda folder: (folder / "config.json").unlink(), 3, "config.json"),
        (lambda folder: (folder / "config.json").write_text("[1]"), 3, "object"),
        (lambda folder: (folder / "config.json").write_text('{"a": 1, "a": 2}'), 3, "a"),
        (lambda folder: (folder / "config.json").write_text('{"rope_theta": NaN}'), 3, "NaN"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\xff" * 8 + b"{}"), 3, "header"),
        (lambda folder: (folder / "model.safetensors").unlink(), 3, "weights"),
        (lambda folder: _edit(folder, hidden_size="wide"), 1, "hidden_size"),
        (lambda folder: _edit(folder, num_attention_heads=None), 1, "num_attention_heads"),
        (lambda folder: _edit(folder, rope_scaling=[1]), 1, "rope_scaling"),
        (lambda folder: _edit(folder, fc_norm="yes"), 1, "fc_norm"),
        (lambda folder: _edit(folder, eagle_config={"eagle_aux_hidden_state_layer_ids": ["a"]}), 1, "integers"),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
def test_bad_input_is_one_clear_line(drafter: Path, tmp_path: Path, damage, exit_code: int, words: str) -> None:  # type: ignore[no-untyped-def]
    damage(drafter)

    result = run("convert", drafter, tmp_path / "out")

    lines = [line for line in (result.stdout + result.stderr).splitlines() if line.startswith("error")]
    assert result.exit_code == exit_code
    assert any(words in line for line in lines), result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def _edit(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_an_unknown_layout_names_from(tmp_path: Path, drafter: Path) -> None:
    from safetensors.numpy import load_file, save_file

    tensors = {f"blob.{index}": array for index, array in enumerate(load_file(drafter / "model.safetensors").values())}
    save_file(tensors, drafter / "model.safetensors")

    result = run("convert", drafter, tmp_path / "out")

    assert result.exit_code == 3
    assert "--from" in result.stderr


@pytest.mark.parametrize("arguments", [(), ("--to", "nonsense"), ("--from", "nonsense"), ("--max-shard-size", "big")])
def test_usage_errors(drafter: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    out = (tmp_path / "out",) if arguments else ()

    assert run("convert", drafter, *out, *arguments).exit_code == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_the_output_absent_or_whole(tmp_path: Path) -> None:
    drafter = build("vllm-float32", tmp_path / "drafter").path
    command = [sys.executable, "-m", "eaglehub", "convert", str(drafter), str(tmp_path / "out"), "--dtype", "float16"]
    seconds = _seconds(command)
    random.seed(0)

    for _ in range(6):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0.6, 1.0) * seconds)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if (tmp_path / "out").exists():
            _is_whole(tmp_path / "out")
            command = [*command[:7], *command[7:], "--force"] if "--force" not in command else command
    subprocess.run([*command, "--force"], check=True, stdout=subprocess.DEVNULL)

    _is_whole(tmp_path / "out")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["drafter", "out"]


def _seconds(command: list[str]) -> float:
    start = time.monotonic()
    subprocess.run([*command, "--dry-run"], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def _is_whole(folder: Path) -> None:
    assert {file.name for file in folder.iterdir()} == {"config.json", "model.safetensors", "eaglehub.json"}
    json.loads((folder / "config.json").read_text())
    json.loads((folder / "eaglehub.json").read_text())
    with safe_open(folder / "model.safetensors", "np") as file:
        assert len(list(file.keys())) > 10


def test_a_tie_names_the_evidence_and_from(drafter: Path, tmp_path: Path) -> None:
    _edit(drafter, architectures=["Eagle3LlamaForCausalLM"], target_model_type="qwen3", _torchspec_version="1")

    tied = run("convert", drafter, tmp_path / "out")
    settled = run("convert", drafter, tmp_path / "out", "--from", "torchspec")

    assert tied.exit_code == 3
    assert all(word in tied.stderr for word in ("angelslim", "torchspec", "--from"))
    assert settled.exit_code == 0
