from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open

from tests.drafters import BROKEN, BUILDERS, NEEDS_TORCH, SOUND, Built, build, target_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EVERY = sorted({**BUILDERS, **BROKEN})
IDS_KEY = "eagle_aux_hidden_state_layer_ids"


def read_weights(folder: Path) -> dict[str, np.ndarray]:
    tensors: dict[str, np.ndarray] = {}
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="np") as opened:
            tensors |= {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    for file in [*folder.glob("*.bin"), *folder.glob("*.pt")]:
        tensors |= {name: from_torch(tensor) for name, tensor in pytest.importorskip("torch").load(file).items()}
    return tensors


def from_torch(tensor: Any) -> Any:
    if str(tensor.dtype) == "torch.bfloat16":
        return tensor.view(pytest.importorskip("torch").int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix not in {".bin", ".pt"}}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    cache: dict[str, Built] = {}

    def get(name: str) -> Built:
        if name not in cache:
            if name in NEEDS_TORCH:
                pytest.importorskip("torch")
            cache[name] = build(name, tmp_path_factory.mktemp(name))
        return cache[name]

    return get


@pytest.mark.parametrize("name", EVERY)
def test_a_fixture_is_a_loadable_folder(built: Callable[[str], Built], name: str) -> None:
    drafter = built(name)
    written = read_weights(drafter.path)
    assert json.loads((drafter.path / "config.json").read_text()) == drafter.config
    assert written.keys() == drafter.tensors.keys()
    for tensor, array in drafter.tensors.items():
        assert written[tensor].dtype == array.dtype
        assert written[tensor].tobytes() == array.tobytes()


@pytest.mark.parametrize("name", EVERY)
def test_a_fixture_is_the_same_every_time(built: Callable[[str], Built], name: str, tmp_path: Path) -> None:
    first = built(name)
    assert contents(build(name, tmp_path).path) == contents(first.path)


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_an_expectation_is_consistent_with_itself(built: Callable[[str], Built], name: str) -> None:
    expected = built(name).expected
    if expected is None:
        assert name in BROKEN
        return
    config, tensors = expected.config, expected.tensors
    assert not set(expected.absent) & config.keys()
    assert set(expected.dropped) <= built(name).tensors.keys()
    assert (IDS_KEY in config) != (IDS_KEY in expected.absent)
    assert tensors["fc.weight"].shape[1] == config["num_aux_hidden_states"] * config["target_hidden_size"]
    assert tensors["lm_head.weight"].shape == (config["draft_vocab_size"], config["hidden_size"])
    assert ("d2t" in tensors) == (config["draft_vocab_size"] < config["vocab_size"])
    assert config["fc_norm"] == ("fc_norm.0.weight" in tensors)
    assert config["norm_before_fc"] == ("input_norm.weight" in tensors)
    if IDS_KEY in config:
        assert config[IDS_KEY] == sorted(set(config[IDS_KEY]))
        assert len(config[IDS_KEY]) == config["num_aux_hidden_states"]
    if expected.refused_without_options:
        assert expected.options


def test_no_two_tensors_of_a_drafter_are_alike(built: Callable[[str], Built]) -> None:
    arrays = [array.tobytes() for array in built("vllm-3.1").tensors.values()]
    assert len(arrays) == len(set(arrays))


def test_the_offset_map_is_unmistakable(built: Callable[[str], Built]) -> None:
    tensors = built("specforge").tensors
    steps = np.diff(tensors["d2t"])
    assert (steps >= 0).all()
    assert (steps == 0).any()
    assert np.array_equal(np.flatnonzero(tensors["t2d"]), tensors["d2t"] + np.arange(48))


def test_an_absolute_map_without_t2d_leaves_the_vocabulary_when_read_as_offsets(
    built: Callable[[str], Built],
) -> None:
    d2t = built("absolute-d2t-no-t2d").tensors["d2t"]
    assert (np.diff(d2t) > 0).all()
    assert (d2t + np.arange(48)).max() >= 160


def test_unsorted_ids_move_the_column_blocks_of_fc(built: Callable[[str], Built]) -> None:
    source, expected = built("unsorted-ids").tensors, built("unsorted-ids").expected
    assert expected is not None
    low, mid, high = np.split(expected.tensors["fc.weight"], 3, axis=1)
    assert np.array_equal(source["fc.weight"], np.concatenate([high, low, mid], axis=1))
    assert np.array_equal(source["fc_norm.0.weight"], expected.tensors["fc_norm.2.weight"])


def test_the_sound_ones_are_expected_whole(built: Callable[[str], Built]) -> None:
    for name in SOUND:
        drafter = built(name)
        assert drafter.expected is not None
        assert len(drafter.expected.tensors) + len(drafter.expected.dropped) == len(drafter.tensors)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt_oss", "kimi_k2", "deepseek_v3"])
def test_a_target_is_a_config(kind: str, tmp_path: Path) -> None:
    config = json.loads((target_config(kind, tmp_path / kind, vocab_size=161) / "config.json").read_text())
    text = config.get("text_config", config)
    assert text["model_type"] == kind
    assert text["vocab_size"] == 161
