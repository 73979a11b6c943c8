"""What the engine's module holds against the file, with modules described by hand."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from eaglehub.checkpoint import open_checkpoint
from eaglehub.drafter.target import read_target
from eaglehub.scoring.candidate import read_candidate
from eaglehub.verify.checks import CATALOGUE, CheckResult
from eaglehub.verify.loaded import judge_flags, judge_weights
from tests.drafters import build, target_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WEIGHTS, FLAGS = CATALOGUE["loaded.weights"], CATALOGUE["loaded.flags"]
Tensors = dict[str, dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return build("vllm-3.1", tmp_path / "drafter").path


def held(folder: Path) -> Tensors:
    """What an engine in float32 should have, worked out from the file without the code under test."""
    checkpoint = open_checkpoint(folder)
    tensors: Tensors = {}
    for name in checkpoint.tensors:
        values = checkpoint.read(name)
        wide = values.astype(np.int64 if values.dtype.kind == "i" else np.float32) + 0
        digest = hashlib.sha256(wide.tobytes()).hexdigest()
        tensors[name] = {"shape": list(values.shape), "sha256": digest, "shared": False}
    tensors.pop("t2d", None)
    tensors.setdefault("embed_tokens.weight", {"shape": [1, 1], "sha256": None, "shared": True})
    return tensors


def judged(folder: Path, tensors: Tensors | None, dtype: str = "float32") -> CheckResult:
    return judge_weights(WEIGHTS, open_checkpoint(folder), tensors and {"tensors": tensors}, dtype)


def test_everything_as_in_the_file(folder: Path) -> None:
    result = judged(folder, held(folder))
    assert result.verdict == "pass", result.summary
    assert result.evidence["explained"]["embed_tokens.weight"] == "vLLM shares the target's"


def _ignore(tensors: Tensors) -> None:
    del tensors["norm.weight"]


def _leave_unset(tensors: Tensors) -> None:
    tensors["fc_norm.9.weight"] = tensors["norm.weight"]


def _change(tensors: Tensors) -> None:
    tensors["fc.weight"]["sha256"] = "0" * 64


def _share_a_pruned_head(tensors: Tensors) -> None:
    tensors["layers.0.extra.weight"] = {"shape": [1], "sha256": None, "shared": True}


def test_what_vllm_makes_itself(folder: Path) -> None:
    tensors = held(folder)
    own = {"shape": [1], "sha256": "0" * 64, "shared": False}
    names = {"layers.0.self_attn.mla_attn.W_UV": "vLLM makes it of kv_b_proj"}
    names |= {"layers.1.hidden_norm.weight": "only the first layer has a use for it"}
    result = judged(folder, tensors | dict.fromkeys(names, own))
    assert result.verdict == "pass"
    assert names.items() <= result.evidence["explained"].items()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_ignore, "norm.weight: vLLM ignored it"),
        (_leave_unset, "fc_norm.9.weight: never set: the file has none"),
        (_change, "fc.weight: differs from the file"),
        (_share_a_pruned_head, "layers.0.extra.weight: never set: the file has none"),
    ],
)
def test_what_is_not_as_in_the_file(folder: Path, damage: Callable[[Tensors], None], said: str) -> None:
    tensors = held(folder)
    damage(tensors)
    result = judged(folder, tensors)
    assert (result.verdict, result.summary) == ("fail", said)


def test_another_dtype_is_another_value(folder: Path) -> None:
    tensors = held(folder)
    assert judged(folder, tensors, "float16").verdict == ("pass" if _same_in_half(folder) else "fail")


def _same_in_half(folder: Path) -> bool:
    checkpoint = open_checkpoint(folder)
    arrays = (checkpoint.read(name) for name in checkpoint.tensors)
    floats = (array.astype(np.float32) for array in arrays if array.dtype.kind != "i")
    return all(np.array_equal(array, array.astype(np.float16).astype(np.float32)) for array in floats)


def test_a_part_of_a_tensor_is_not_compared(folder: Path) -> None:
    tensors = held(folder)
    rows, columns = tensors["fc.weight"]["shape"]
    tensors["fc.weight"] = {"shape": [rows // 2, columns], "sha256": "0" * 64, "shared": False}
    result = judged(folder, tensors)
    assert (result.verdict, list(result.evidence["not_compared"])) == ("pass", ["fc.weight"])
    assert "1 not compared" in result.summary


def test_an_engine_that_does_not_show_it(folder: Path) -> None:
    assert judged(folder, None).verdict == "skipped"


def flags(folder: Path, target: Path, **changes: Any) -> CheckResult:
    config = json.loads((folder / "config.json").read_text())
    shown = {
        "fc_norm": True,
        "norm_output": True,
        "norm_before_fc": None,
        "rms_norm_eps": np.float32(config["rms_norm_eps"]).item(),
        "aux_layer_ids": config["eagle_aux_hidden_state_layer_ids"],
    }
    candidate = read_candidate(open_checkpoint(folder), read_target(target))
    return judge_flags(FLAGS, candidate, read_target(target), {"flags": shown | changes})


def test_flags(folder: Path, tmp_path: Path) -> None:
    target_config("llama", tmp_path / "target")
    assert flags(folder, tmp_path / "target").verdict == "pass"
    result = flags(folder, tmp_path / "target", norm_output=False, aux_layer_ids=[1, 5, 8])
    assert result.verdict == "fail"
    assert result.summary.split(", aux") == [
        "norm_output is true in the file and false in vLLM",
        "_layer_ids is [2, 6, 9] in the file and [1, 5, 8] in vLLM",
    ]


def test_flags_of_a_drafter_that_cannot_be_read(tmp_path: Path) -> None:
    target = target_config("llama", tmp_path / "target")
    result = judge_flags(FLAGS, "the drafter cannot be read: x", read_target(tmp_path / "target"), {"flags": {}})
    assert (result.verdict, result.summary) == ("skipped", "the drafter cannot be read: x")
    assert target
