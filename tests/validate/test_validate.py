"""The command: several paths, selections, exit codes, and what it does not do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.processes import run_process
from tests.cli_runner import run
from tests.drafters import build, target_config
from tests.reports import validate
from tests.validate.cases import build as build_case

ROOT = Path(__file__).parents[2]
NAN = {"base": "vllm-3", "tensors": {"lm_head.weight": {"set": [-1, float("nan")]}}}
WARNED = {"base": "vllm-3", "config": {"tie_word_embeddings": True}}


def codes(result: Any) -> list[list[str]]:
    return [[finding["code"] for finding in drafter["findings"]] for drafter in validate(result)["drafters"]]


def test_one_unusable_file_hides_nothing(tmp_path: Path) -> None:
    sound, broken = build("vllm-3", tmp_path / "sound").path, build_case(NAN, tmp_path / "nan")
    result = run("validate", tmp_path / "nowhere", broken, sound, "--json")
    assert codes(result) == [["EH101"], ["EH501"], []]
    assert [drafter["exit_code"] for drafter in result.json()["drafters"]] == [3, 1, 0]
    assert result.exit_code == 3


def test_what_an_engine_drops_is_no_name_that_it_refuses(tmp_path: Path) -> None:
    """Reading stops at the sizes, before it comes to say that t2d has no use."""
    assert codes(run("validate", build("head-dim", tmp_path / "drafter").path, "--json")) == [["EH202"]]


def test_unreadable_weights_do_not_hide_the_config(tmp_path: Path) -> None:
    case = {
        "base": "vllm-3",
        "config": {"auto_map": {"": "x.Y"}, "_name_or_path": "/data/run7"},
        "files": {"model.safetensors": {"cut": 10}, "x.py": ""},
    }
    result = run("validate", build_case(case, tmp_path), "--json")
    assert codes(result) == [["EH103", "EH901", "EH903", "EH905"]]
    lines = (tmp_path / "config.json").read_text().splitlines()
    assert '"auto_map"' in lines[result.json()["drafters"][0]["findings"][1]["line"] - 1]
    assert result.exit_code == 3


def test_all_faults_are_found_at_once(tmp_path: Path) -> None:
    case = {
        "base": "vllm-3",
        "config": {"fc_norm": True, "architectures": ["Nobody"], "hidden_act": "gelu"},
        "remove": ["layers.0.mlp.down_proj.weight"],
        "tensors": {"d2t": {"fill": 0}, "norm.weight": {"set": [0, float("inf")]}, "extra": {"shape": [3]}},
    }
    result = run("validate", build_case(case, tmp_path), "--json")
    assert codes(result) == [["EH204", "EH301", "EH302", "EH404", "EH501", "EH706", "EH803"]]


def test_a_config_stands_for_its_folder(tmp_path: Path) -> None:
    folder = build_case(NAN, tmp_path)
    assert codes(run("validate", folder / "config.json", "--json")) == [["EH501"]]
    assert codes(run("validate", folder / "model.safetensors", "--json")) == [["EH501"]]


def test_select_and_ignore(tmp_path: Path) -> None:
    folder = build_case(NAN | {"config": {"auto_map": {"": "x.Y"}}}, tmp_path)
    assert codes(run("validate", folder, "--select", "EH9", "--json")) == [["EH901"]]
    assert codes(run("validate", folder, "--select", "EH9", "--select", "EH501", "--json")) == [["EH501", "EH901"]]
    assert codes(run("validate", folder, "--ignore", "EH9", "--json")) == [["EH501"]]
    assert run("validate", folder, "--ignore", "EH9", "--ignore", "EH501").exit_code == 0
    report = run("validate", folder, "--select", "EH501", "--json").json()
    assert report["drafters"][0]["checked"] == ["EH501"]


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        ((), 0),
        (("--strict",), 1),
        (("--fail-on", "note"), 1),
        (("--fail-on", "warning"), 1),
        (("--fail-on", "never"), 0),
    ],
)
def test_what_counts_as_failure(options: tuple[str, ...], exit_code: int, tmp_path: Path) -> None:
    assert run("validate", build_case(WARNED, tmp_path), *options).exit_code == exit_code


def test_never_failing_still_tells_unusable_input(tmp_path: Path) -> None:
    assert run("validate", build_case(NAN, tmp_path), "--fail-on", "never").exit_code == 0
    assert run("validate", tmp_path / "nowhere", "--fail-on", "never").exit_code == 3


def test_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_case(NAN, tmp_path / "drafter")
    monkeypatch.chdir(tmp_path)
    assert run("validate", "drafter").stdout == (
        "drafter\n"
        "error EH501 lm_head.weight: lm_head.weight holds NaN or infinity\n"
        "  fix: take an earlier checkpoint, or train in bfloat16\n"
        "1 drafter checked as served by vLLM 0.32: 1 error, 0 warnings, 0 notes\n"
    )


def test_no_values_reads_no_weights(tmp_path: Path) -> None:
    folder = build_case(NAN | {"tensors": NAN["tensors"] | {"d2t": {"fill": 0}}}, tmp_path)
    report = run("validate", folder, "--no-values", "--json").json()
    assert codes(run("validate", folder, "--no-values", "--json")) == [[]]
    skipped = {rule["code"]: rule["reason"] for rule in report["drafters"][0]["skipped"]}
    assert {"EH404", "EH501", "EH502", "EH503"} <= skipped.keys()
    assert "--no-values" in skipped["EH501"]


def test_headers_need_no_heavy_package(tmp_path: Path) -> None:
    code = f"""if True:
        import sys
        from eaglehub.cli.main import main
        main(["validate", "--no-values", {str(build("vllm-3.1", tmp_path).path)!r}])
        heavy = {{"numpy", "ml_dtypes", "torch", "jsonschema", "rich", "huggingface_hub"}}
        print(sorted(heavy & set(sys.modules)), file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_values_need_no_torch(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from eaglehub.cli.main import main; sys.exit(main(sys.argv[1:]))"
    folder = build_case(NAN, tmp_path)
    done = subprocess.run([sys.executable, "-c", code, "validate", folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "EH501" in done.stdout


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("vllm=0.3", "unknown engine"),
        ("tgi", "one of vllm, sglang, tensorrt-llm, none"),
        ("vllm==new", "unknown engine"),
    ],
)
def test_unknown_engines(engine: str, message: str, tmp_path: Path) -> None:
    result = run("validate", tmp_path, "--engine", engine)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize(("engine", "nearest"), [("vllm==0.1", "vLLM 0.10"), ("vllm==7.1", "vLLM 0.32")])
def test_a_version_beyond_the_described_ones(engine: str, nearest: str, tmp_path: Path) -> None:
    result = run("validate", build("vllm-3", tmp_path).path, "--engine", engine)
    assert f"is not described; judged as {nearest}\n" in result.stderr


def test_wrong_target(tmp_path: Path) -> None:
    result = run("validate", tmp_path, "--target", tmp_path / "nowhere")
    assert (result.exit_code, result.stdout) == (3, "")


def test_answers_are_taken(tmp_path: Path) -> None:
    folder = build("specforge-3.1", tmp_path).path
    assert "EH701" in codes(run("validate", folder, "--json"))[0]
    assert "EH701" not in codes(run("validate", folder, "--feedback", "pre-norm", "--json"))[0]


def test_a_multimodal_target(tmp_path: Path) -> None:
    drafter = build("vllm-mla", tmp_path / "drafter").path
    target = target_config("kimi_k2", tmp_path / "target", rope_theta=10000.0)
    assert json.loads((target / "config.json").read_text())["text_config"]
    result = run("validate", drafter, "--target", target, "--ignore", "EH704", "--json")
    assert codes(result) == [[]]


def test_the_hook_runs(tmp_path: Path) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, *arguments = hook["entry"].split()
    assert program == "eaglehub"
    folder = build("vllm-3", tmp_path).path
    assert run_process(*arguments, str(folder / "config.json")).returncode == 0
