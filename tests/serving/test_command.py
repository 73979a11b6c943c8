"""`eaglehub serve-command`: the line a shell gets, and drafters that must not be served."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli_runner import run
from tests.drafters import build, target_config
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path


def serve(drafter: Path | str, *options: str | Path) -> list[str]:
    result = run("serve-command", drafter, *options)
    assert result.exit_code == 0, result.stderr
    (line,) = result.stdout.splitlines()
    return shlex.split(line)


def speculative(argv: list[str]) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(argv[argv.index("--speculative-config") + 1])
    return config


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    return build("vllm-3.1", tmp_path / "a drafter's").path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return target_config("llama", tmp_path / "target")


def change(folder: Path, **keys: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | keys))


def test_vllm(drafter: Path, target: Path) -> None:
    argv = serve(drafter, "--target", target, "--num-speculative-tokens", "3")
    assert argv[:4] == ["vllm", "serve", str(target), "--speculative-config"]
    assert speculative(argv) == {"method": "eagle3", "model": str(drafter), "num_speculative_tokens": 3}
    assert len(argv) == 5


def test_a_shell_gets_the_path_whole(drafter: Path) -> None:
    line = run("serve-command", drafter, "--target", "org/it's a $(target)").stdout
    done = subprocess.run(["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[2] == "org/it's a $(target)"
    assert json.loads(done.stdout.splitlines()[4])["model"] == str(drafter)


def test_sglang_drafts_a_chain(tmp_path: Path, target: Path) -> None:
    source = build("vllm-3.1", tmp_path / "source").path
    drafter = tmp_path / "drafter"
    assert run("convert", source, drafter, "--to", "sglang", "--target", target).exit_code == 0
    argv = serve(drafter, "--target", target, "--engine", "sglang", "--num-speculative-tokens", "3")
    options = dict(zip(argv[3::2], argv[4::2], strict=True))
    assert argv[:3] == ["python", "-m", "sglang.launch_server"]
    assert options == {
        "--model-path": str(target),
        "--speculative-algorithm": "EAGLE3",
        "--speculative-draft-model-path": str(drafter),
        "--speculative-num-steps": "3",
        "--speculative-eagle-topk": "1",
        "--speculative-num-draft-tokens": "4",
    }
    change(target, quantization_config={"quant_method": "fp8"})
    argv = serve(drafter, "--target", target, "--engine", "sglang")
    assert argv[argv.index("--speculative-draft-model-quantization") + 1] == "unquant"


def test_several_gpus_and_long_sequences(drafter: Path, target: Path) -> None:
    positions = json.loads((drafter / "config.json").read_text())["max_position_embeddings"]
    length = str(positions * 2)
    argv = serve(drafter, "--target", target, "--tensor-parallel-size", "2", "--max-model-len", length)
    assert argv[5:] == ["--tensor-parallel-size", "2", "--max-model-len", length]
    assert speculative(argv)["max_model_len"] == positions
    assert "max_model_len" not in speculative(serve(drafter, "--target", target, "--max-model-len", str(positions)))


@pytest.mark.parametrize("ways", ["3", "8"])
def test_a_drafter_that_cannot_be_split(drafter: Path, ways: str) -> None:
    result = run("serve-command", drafter, "--target", "org/target", "--tensor-parallel-size", ways)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"no {ways} equal parts" in result.stderr


def test_a_name_is_enough_for_the_target(drafter: Path) -> None:
    result = run("serve-command", drafter, "--target", "org/target@v1")
    assert result.exit_code == 0
    assert shlex.split(result.stdout)[2:5] == ["org/target", "--revision", "v1"]
    assert "org/target was not looked at" in result.stderr


def test_a_drafter_that_would_not_be_read_as_meant_is_refused(tmp_path: Path, target: Path) -> None:
    drafter = build("specforge", tmp_path / "drafter").path
    result = run("serve-command", drafter, "--target", target)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error EH711 config.json: " in result.stderr
    assert "(fix: eaglehub convert)" in result.stderr
    report = run("serve-command", drafter, "--target", target, "--json")
    assert validate(report)["argv"] is None
    assert "EH711" in [finding["code"] for finding in report.json()["findings"]]


def test_a_drafter_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = run("serve-command", tmp_path / "nowhere", "--target", "org/target")
    assert result.exit_code == 3
    assert "error EH101 nowhere: does not exist" in result.stderr


def test_an_option_is_no_target(drafter: Path) -> None:
    result = run("serve-command", drafter, "--target", "--help")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--help: begins with a dash" in result.stderr


def test_json(drafter: Path, target: Path) -> None:
    report = validate(run("serve-command", drafter, "--target", target, "--json"))
    assert report["argv"] == serve(drafter, "--target", target)
    assert report["engine"].startswith("vLLM 0.")


def test_an_older_engine_is_asked_too_much(drafter: Path) -> None:
    result = run("serve-command", drafter, "--target", "org/target", "--engine", "vllm==0.20")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "vLLM 0.22 is the first that can" in result.stderr


@pytest.mark.parametrize("engine", ["tensorrt-llm", "none", "llama.cpp"])
def test_an_engine_without_a_command(drafter: Path, engine: str) -> None:
    assert run("serve-command", drafter, "--target", "org/target", "--engine", engine).exit_code == 2


def test_a_drafter_that_is_not_there(tmp_path: Path) -> None:
    result = run("serve-command", tmp_path / "absent", "--target", "org/target")
    assert (result.exit_code, result.stdout) == (3, "")
