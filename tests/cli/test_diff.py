"""`eaglehub diff`."""

from __future__ import annotations

import json
import os
import tracemalloc
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from eaglehub.checkpoint import open_checkpoint
from eaglehub.diff import bytes_to_compare, diff_checkpoints
from tests.cli.processes import run_in_terminal
from tests.cli_runner import run
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

Tensors = dict[str, np.ndarray]
CONFIG = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "hidden_size": 8,
    "rope_scaling": {"factor": 2.0, "type": "yarn"},
}


def drafter(folder: Path, tensors: Tensors, config: dict[str, Any] = CONFIG) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return folder


def values(*shape: int, seed: int = 0, dtype: Any = ml_dtypes.bfloat16) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def tensor_diff(tmp_path: Path, before: Tensors, after: Tensors) -> dict[str, Any]:
    result = run("diff", drafter(tmp_path / "a", before), drafter(tmp_path / "b", after), "--json")
    report = validate(result)
    assert result.exit_code == int(not report["same"])
    return report["tensors"]


def test_same(tmp_path: Path) -> None:
    tensors = {"fc.weight": values(8, 24), "d2t": np.arange(8), "mask": np.zeros(3, bool)}
    a, b = drafter(tmp_path / "a", tensors), drafter(tmp_path / "b", tensors)
    result = run("diff", a, b)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "a -> b\nconfig\n  the same\ntensors\n  3 the same\n"
    report = validate(run("diff", a, b, "--json"))
    assert report["same"]
    assert report["tensors"]["same"] == 3


def test_config(tmp_path: Path) -> None:
    after = {
        "architectures": ["Eagle3LlamaForCausalLM"],
        "hidden_size": 8.0,
        "rope_scaling": {"type": "yarn", "beta.fast": 32},
        "quantization_config": {},
    }
    tensors = {"norm.weight": values(8)}
    a, b = drafter(tmp_path / "a", tensors), drafter(tmp_path / "b", tensors, after)
    result = run("diff", a, b, "--json")
    assert result.exit_code == 1
    assert validate(result)["config"] == {
        "added": [{"key": 'rope_scaling."beta.fast"', "value": 32}, {"key": "quantization_config", "value": {}}],
        "removed": [{"key": "rope_scaling.factor", "value": 2.0}],
        "changed": [
            {"key": "architectures", "before": ["LlamaForCausalLMEagle3"], "after": ["Eagle3LlamaForCausalLM"]},
            {"key": "hidden_size", "before": 8, "after": 8.0},
        ],
    }
    assert '  ~ architectures: ["LlamaForCausalLMEagle3"] -> ["Eagle3LlamaForCausalLM"]\n' in run("diff", a, b).stdout


def test_added_removed_renamed(tmp_path: Path) -> None:
    fc, norm, ones = values(8, 24), values(8, seed=1), np.ones(8, ml_dtypes.bfloat16)
    before = {
        "fc.weight": fc,
        "midlayer.hidden_norm.weight": ones,
        "midlayer.input_layernorm.weight": ones,
        "t2d": norm,
    }
    after = {"fc.weight": fc, "layers.0.input_layernorm.weight": ones, "layers.0.hidden_norm.weight": ones, "new": fc}
    found = tensor_diff(tmp_path, before, after)
    assert found == {
        "added": [{"name": "new", "dtype": "BF16", "shape": [8, 24]}],
        "removed": [{"name": "t2d", "dtype": "BF16", "shape": [8]}],
        "renamed": [
            {
                "before": f"midlayer.{name}.weight",
                "after": f"layers.0.{name}.weight",
                "dtype": "BF16",
                "shape": [8],
            }
            for name in ("hidden_norm", "input_layernorm")
        ],
        "changed": [],
        "same": 1,
        "not_compared": 0,
    }


def test_values(tmp_path: Path) -> None:
    before = {
        "w": np.arange(8, dtype=np.float32).reshape(2, 4),
        "d2t": np.array([0, 2**40]),
        "b": np.array([True, True]),
    }
    after = {name: tensor.copy() for name, tensor in before.items()}
    after["w"][1, 2:] += (0.5, -3.25)
    after["d2t"][1] += 1
    after["b"][0] = False
    changed = {change["name"]: change["values"] for change in tensor_diff(tmp_path, before, after)["changed"]}
    assert changed == {
        "w": {"max_abs_difference": 3.25, "differing_share": 0.25},
        "d2t": {"max_abs_difference": 1.0, "differing_share": 0.5},
        "b": {"max_abs_difference": 1.0, "differing_share": 0.5},
    }
    text = run("diff", tmp_path / "a", tmp_path / "b").stdout
    assert "  ~ w F32 [2, 4]: 25.0000% of the elements differ, by at most 3.25\n" in text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (0.0, -0.0, {"max_abs_difference": 0.0, "differing_share": 1.0}),
        (1.0, np.nan, {"max_abs_difference": None, "differing_share": 1.0}),
        (np.inf, 1.0, {"max_abs_difference": None, "differing_share": 1.0}),
        (np.inf, -np.inf, {"max_abs_difference": None, "differing_share": 1.0}),
    ],
)
@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=lambda d: np.dtype(d).name
)
def test_special_values(tmp_path: Path, dtype: Any, old: float, new: float, expected: dict[str, Any]) -> None:
    found = tensor_diff(tmp_path, {"w": np.array(old, dtype)}, {"w": np.array(new, dtype)})
    assert found["changed"][0]["values"] == expected


def test_equal_nan_is_no_difference(tmp_path: Path) -> None:
    assert tensor_diff(tmp_path, {"w": np.array([np.nan])}, {"w": np.array([np.nan])})["changed"] == []


def test_dtype(tmp_path: Path) -> None:
    exact = values(3, 5)
    exact[0, 0] = np.nan
    rounded = values(3, 5, dtype=np.float32)
    found = tensor_diff(
        tmp_path, {"cast": exact, "rounded": rounded}, {"cast": exact.astype(np.float32), "rounded": values(3, 5)}
    )
    changed = {change["name"]: change for change in found["changed"]}
    assert changed["cast"] == {
        "name": "cast",
        "before": {"dtype": "BF16", "shape": [3, 5]},
        "after": {"dtype": "F32", "shape": [3, 5]},
        "values": {"max_abs_difference": 0.0, "differing_share": 0.0},
    }
    worst = np.abs(rounded - rounded.astype(ml_dtypes.bfloat16).astype(np.float32)).max()
    assert changed["rounded"]["values"] == {"max_abs_difference": pytest.approx(worst), "differing_share": 1.0}
    assert "  ~ cast BF16 [3, 5] -> F32 [3, 5]: equal values\n" in run("diff", tmp_path / "a", tmp_path / "b").stdout


def test_shape(tmp_path: Path) -> None:
    found = tensor_diff(tmp_path, {"w": values(2, 3), "e": values(0)}, {"w": values(3, 2), "e": values(0)})
    assert [(change["after"]["shape"], change["values"]) for change in found["changed"]] == [([3, 2], None)]
    assert found["same"] == 1


def test_memory_is_bounded_and_progress_complete(tmp_path: Path) -> None:
    big = values(3000, 4096)
    fp8 = big.astype(ml_dtypes.float8_e4m3fn)
    before = drafter(tmp_path / "a", {"big": big, "cast": fp8, "old": big})
    after = drafter(tmp_path / "b", {"big": -big, "cast": big, "new": big})
    old, new = open_checkpoint(before), open_checkpoint(after)
    passed = 0

    def advance(amount: int) -> None:
        nonlocal passed
        passed += amount

    tracemalloc.start()
    try:
        report = diff_checkpoints(old, new, advance)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 << 20
    assert passed == bytes_to_compare(old, new)
    assert [(pair[0].name, pair[1].name) for pair in report.tensors.renamed] == [("old", "new")]
    assert report.tensors.changed[0].values.share == 1.0


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_progress_only_on_a_terminal(tmp_path: Path) -> None:
    tensors = {"fc.weight": values(8, 24)}
    folders = str(drafter(tmp_path / "a", tensors)), str(drafter(tmp_path / "b", tensors))
    assert "comparing" in run_in_terminal("diff", *folders, stream="stderr")
    assert run_in_terminal("--quiet", "diff", *folders, stream="stderr") == ""
    assert "comparing" not in run_in_terminal("diff", *folders, stream="stdout")


def test_hostile_names_cannot_drive_the_terminal(tmp_path: Path) -> None:
    tensors = {"norm.weight": values(8)}
    a = drafter(tmp_path / "a", tensors, {"\x1b[2J": "\x1b]0;title\x07"})
    b = drafter(tmp_path / "b", tensors, {})
    for args in ((), ("--json",)):
        assert "\x1b" not in run("diff", a, b, *args).stdout


def test_missing_folder(tmp_path: Path) -> None:
    result = run("diff", tmp_path / "nothing", tmp_path)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("error: ")
    assert "nothing" in result.stderr
