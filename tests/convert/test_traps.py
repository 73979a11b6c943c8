"""Small contradictions in sound drafters: each must be refused, or read as the engine would, never passed over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from eaglehub.checkpoint import open_checkpoint
from tests.cli_runner import run
from tests.drafters import build, target_config
from tests.reports import validate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def edited(fixture: str, folder: Path, edit: Callable[[dict[str, Any], dict[str, Any]], object]) -> Path:
    """The fixture with its config and tensors changed in place by `edit`."""
    path = build(fixture, folder / "drafter").path
    config = json.loads((path / "config.json").read_text())
    tensors = load_file(path / "model.safetensors")
    edit(config, tensors)
    (path / "config.json").write_text(json.dumps(config))
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    return path


def set_(**keys: Any) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    """Config keys to set; double underscores part nested ones."""

    def edit(config: dict[str, Any], _: dict[str, Any]) -> None:
        for key, value in keys.items():
            *parents, last = key.split("__")
            holder = config
            for parent in parents:
                holder = holder[parent]
            holder[last] = value

    return edit


def drop(*names: str) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    """Config keys or tensors to remove."""

    def edit(config: dict[str, Any], tensors: dict[str, Any]) -> None:
        for name in names:
            (tensors if name in tensors else config).pop(name)

    return edit


def both(
    *edits: Callable[[dict[str, Any], dict[str, Any]], object],
) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    def edit(config: dict[str, Any], tensors: dict[str, Any]) -> None:
        for each in edits:
            each(config, tensors)

    return edit


def tensor(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda _, tensors: tensors.update({name: change(tensors[name])})


UP = "layers.0.mlp.up_proj.weight"
IDS = "eagle_aux_hidden_state_layer_ids"

REFUSED = {
    "rope base in two places": (
        "specforge",
        set_(rope_parameters={"rope_theta": 5.0, "rope_type": "default"}),
        "EH203",
    ),
    "rope default beside yarn": (
        "specforge",
        set_(rope_scaling={"rope_type": "default"}, rope_parameters={"rope_type": "yarn", "factor": 4.0}),
        "EH203",
    ),
    "rope for sliding attention only": (
        "specforge",
        set_(rope_parameters={"sliding_attention": {"rope_theta": 5.0}}),
        "EH201",
    ),
    "parallel drafter without its mask": ("p-eagle", drop("mask_hidden"), "EH302"),
    "speculators' parallel drafter without its mask": ("speculators-peagle", drop("mask_hidden"), "EH302"),
    "two mask tokens": ("p-eagle", set_(pard_token=3), "EH201"),
    "nested ids copied to the top": ("specforge", lambda c, _: c.update({IDS: c["eagle_config"][IDS]}), "EH708"),
    "ids as text": ("vllm-3", set_(**{IDS: "2,6,9"}), "EH201"),
    "nested ids as an object": ("specforge", set_(**{f"eagle_config__{IDS}": {"0": 1}}), "EH201"),
    "other ids for vLLM's V2 runner": ("vllm-3", set_(eagle_config={"layer_ids": [1, 4, 7]}), "EH708"),
    "a weight of integers": ("vllm-3", tensor("fc.weight", lambda a: a.astype(np.int8)), "EH305"),
    "a norm of booleans": ("vllm-3", tensor("norm.weight", lambda a: a.astype(np.bool_)), "EH305"),
    "scales without a quantisation": (
        "vllm-3",
        lambda _, t: t.update({"layers.0.self_attn.q_proj.weight_scale": np.ones(1, np.float32)}),
        "EH206",
    ),
    "a scale of nothing": (
        "vllm-3",
        lambda _, t: t.update({"layers.0.foo.weight_scale": np.ones(1, np.float32)}),
        "EH301",
    ),
    "fc though aux states are off": ("vllm-3", set_(eagle_config={"use_aux_hidden_state": False}), "EH202"),
    "flags that contradict": ("vllm-3", set_(eagle_config={"norm_output": True}, norm_output=False), "EH706"),
    "unsorted ids or offsets": (
        "modelopt",
        tensor("d2t", lambda a: (np.arange(len(a)) * 2 + 1)[[1, 0, *range(2, len(a))]]),
        "EH406",
    ),
    "a later layer's second norm": (
        "vllm-two-layers",
        lambda _, t: t.update({"layers.1.hidden_norm.weight": t["layers.1.input_layernorm.weight"] + 1}),
        "EH304",
    ),
    "a head tied to the drafter's own embedding": (
        "speculators-full-vocab",
        both(set_(tie_word_embeddings=True), drop("lm_head.weight")),
        "EH302",
    ),
    "negative heads": ("vllm-3", set_(num_attention_heads=-4), "EH201"),
    "half the heads": ("vllm-3", both(set_(num_attention_heads=2), drop("head_dim")), "EH202"),
    "a base of zero": ("vllm-3", set_(rope_theta=0), "EH201"),
    "a huge vocabulary": ("modelopt", set_(vocab_size=10**15), "EH201"),
    "an eagle_config that is none": ("vllm-3", set_(eagle_config=[1, 2]), "EH201"),
    "layer_types that is none": ("specforge", set_(layer_types=5), "EH201"),
    "a matrix without axes": (
        "vllm-3",
        tensor("layers.0.self_attn.q_proj.weight", lambda a: np.asarray(a[0, 0])),
        "EH303",
    ),
    "a head without axes": ("vllm-3", tensor("lm_head.weight", lambda a: np.asarray(a[0, 0])), "EH303"),
    "an empty norm": ("vllm-3", tensor("norm.weight", lambda a: a[:0]), "EH303"),
    "an fc of two columns": ("vllm-3", tensor("fc.weight", lambda a: np.ascontiguousarray(a[:, :2])), "EH303"),
    "a layer far away": (
        "vllm-3",
        lambda _, t: t.update({"layers.900.mlp.up_proj.weight": t["layers.0.mlp.up_proj.weight"].copy()}),
        "EH302",
    ),
    "a layer number of many digits": (
        "vllm-3",
        lambda _, t: t.update({f"layers.{'9' * 5000}.x.weight": t["norm.weight"].copy()}),
        "EH301",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    fixture, edit, code = REFUSED[case]
    drafter = edited(fixture, tmp_path, edit)

    report = validate(run("convert", drafter, tmp_path / "out", "--json"))

    errors = {finding["code"] for finding in report["findings"] if finding["severity"] == "error"}
    assert report["status"] == "refused"
    assert code in errors
    assert not (tmp_path / "out").exists()


WARNED = {
    "biases that are not there": ("vllm-3", set_(attention_bias=True), "attention_bias"),
    "another count of aux states": (
        "vllm-3",
        both(set_(num_aux_hidden_states=5, target_hidden_size=64)),
        "num_aux_hidden_states",
    ),
}


@pytest.mark.parametrize("case", WARNED)
def test_warned(case: str, tmp_path: Path) -> None:
    fixture, edit, key = WARNED[case]

    report = validate(run("convert", edited(fixture, tmp_path, edit), tmp_path / "out", "--json"))

    assert report["status"] == "converted"
    assert any(key in finding["where"] for finding in report["findings"] if finding["severity"] == "warning")


READ = {
    "a base inside rope_scaling": (
        "specforge",
        both(drop("rope_theta"), set_(rope_scaling={"rope_type": "default", "rope_theta": 500000.0})),
        {"rope_theta": 500000.0, "rope_scaling": None},
    ),
    "a base inside a real scaling": (
        "specforge",
        both(drop("rope_theta"), set_(rope_scaling={"rope_type": "linear", "factor": 2.0, "rope_theta": 500000.0})),
        {"rope_theta": 500000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    ),
    "an eagle_config of null": ("vllm-3", set_(eagle_config=None), {"norm_output": False}),
    "TensorRT-LLM's name for norm_output": (
        "vllm-3",
        both(drop("norm_output"), set_(eagle_config={"return_hidden_post_norm": True})),
        {"norm_output": True, "eagle_config": {"use_aux_hidden_state": True, "norm_before_fc": False}},
    ),
    "biases that vLLM would make up": ("vllm-3", set_(bias=True, qkv_bias=True), {"bias": None, "qkv_bias": None}),
    "a path of somebody's machine": (
        "specforge",
        set_(target_model_path="/home/alice/model"),
        {"target_model_path": None},
    ),
    "speculators' layer config before the top level": (
        "speculators-llama",
        set_(rope_theta=777.0, transformer_layer_config__rope_theta=500000.0),
        {"rope_theta": 500000.0},
    ),
}


@pytest.mark.parametrize("case", READ)
def test_read(case: str, tmp_path: Path) -> None:
    fixture, edit, expected = READ[case]

    result = run("convert", edited(fixture, tmp_path, edit), tmp_path / "out")

    assert result.exit_code == 0, result.stdout + result.stderr
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert {key: config.get(key) for key in expected} == expected


def test_specforge_without_t2d_is_not_taken_for_another_producer(tmp_path: Path) -> None:
    drafter = edited("specforge-3.1", tmp_path, drop("t2d"))

    guessed = run("convert", drafter, tmp_path / "out")
    named = run("convert", drafter, tmp_path / "out", "--from", "specforge")

    assert (guessed.exit_code, named.exit_code) == (3, 1)
    assert "--feedback" in named.stdout


def test_scales_keep_their_precision(tmp_path: Path) -> None:
    scale = np.array([0.0301234], np.float32)

    def quantise(config: dict[str, Any], tensors: dict[str, Any]) -> None:
        import ml_dtypes

        name = "layers.0.mlp.up_proj"
        tensors[f"{name}.weight"] = tensors[f"{name}.weight"].astype(ml_dtypes.float8_e4m3fn)
        tensors[f"{name}.weight_scale"] = scale
        config["quantization_config"] = {"quant_method": "fp8"}

    drafter = edited("vllm-3", tmp_path, quantise)

    result = run("convert", drafter, tmp_path / "out", "--dtype", "float16")

    assert result.exit_code == 0, result.stdout
    written = open_checkpoint(tmp_path / "out")
    assert written.read("layers.0.mlp.up_proj.weight_scale") == scale
    assert written.tensors["layers.0.mlp.up_proj.weight"].dtype == "F8_E4M3"
    assert written.tensors["norm.weight"].dtype == "F16"


@pytest.mark.parametrize("value", ["inf", "nan", "1e400", "-5", "0"])
def test_a_base_that_is_no_number_is_a_usage_error(value: str, tmp_path: Path) -> None:
    drafter = build("vllm-3", tmp_path / "drafter").path

    assert run("convert", drafter, tmp_path / "out", "--rope-theta", value).exit_code == 2


@pytest.mark.parametrize(
    "facts", [{"architectures": 5}, {"architectures": "LlamaForCausalLM"}, {"max_position_embeddings": "4096"}]
)
def test_a_target_with_odd_values_is_unusable(facts: dict[str, Any], tmp_path: Path) -> None:
    drafter = build("vllm-3", tmp_path / "drafter").path
    target = target_config("llama", tmp_path / "target", vocab_size=160, hidden_size=64, **facts)

    assert run("convert", drafter, tmp_path / "out", "--target", target).exit_code == 3


def test_a_number_written_otherwise_is_no_change(tmp_path: Path) -> None:
    drafter = build("vllm-3", tmp_path / "drafter").path
    run("convert", drafter, tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    config["rope_theta"] = int(config["rope_theta"])
    (tmp_path / "out" / "config.json").write_text(json.dumps(config))

    assert run("convert", tmp_path / "out", "--check").exit_code == 0


@pytest.mark.parametrize("layout", ["sglang", "specforge", "speculators", "modelopt"])
def test_a_written_layout_passes_its_own_check(layout: str, tmp_path: Path) -> None:
    name = "vllm-two-layers" if layout in ("sglang", "speculators", "modelopt") else "vllm-3"
    drafter = build(name, tmp_path / "drafter").path
    facts = {"vocab_size": 160, "hidden_size": 64, "num_hidden_layers": 36, "max_position_embeddings": 64}
    target = target_config("llama", tmp_path / "target", **facts)
    written = run("convert", drafter, tmp_path / "out", "--to", layout, "--target", target)
    assert written.exit_code == 0, written.stdout

    result = run("convert", tmp_path / "out", "--to", layout, "--check")

    assert result.exit_code == 0, result.stdout


def test_only_known_companions_are_copied_and_no_link_is_followed_outside(tmp_path: Path) -> None:
    drafter = build("vllm-3", tmp_path / "drafter").path
    secret = tmp_path / "secret"
    secret.write_text("private")
    for name in (".env", "setup.sh", "modeling.PY", "a.pyc", "b.so", "c.pkl", "d.ckpt", "e.gguf", "f.npz"):
        (drafter / name).write_text("x")
    (drafter / "LICENSE").symlink_to(secret)
    (drafter / "tokenizer.model").write_text("x")

    run("convert", drafter, tmp_path / "out")

    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "config.json",
        "model.safetensors",
        "eaglehub.json",
        "tokenizer.model",
    }


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "-"])
def test_a_report_never_replaces_a_checkpoints_file(file: str, tmp_path: Path) -> None:
    drafter = build("vllm-3", tmp_path / "drafter").path
    before = (drafter / "config.json").read_bytes()
    path = drafter / file if file != "-" else file

    assert run("inspect", drafter, "--output", f"json={path}").exit_code == 2
    assert (drafter / "config.json").read_bytes() == before


def test_a_convention_without_ids_is_a_usage_error(tmp_path: Path) -> None:
    drafter = build("angelslim", tmp_path / "drafter").path

    assert run("convert", drafter, "--dry-run", "--aux-id-convention", "out").exit_code == 2


@pytest.mark.parametrize(("value", "code"), [(0, "EH502"), (0.5, "EH503")])
def test_a_weight_that_was_never_filled_is_refused(value: float, code: str, tmp_path: Path) -> None:
    drafter = edited("vllm-3", tmp_path, tensor(UP, lambda a: np.full_like(a, value)))

    report = validate(run("convert", drafter, tmp_path / "out", "--json"))

    assert report["status"] == "refused"
    assert (code, UP) in {(finding["code"], finding["where"]) for finding in report["findings"]}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["drafter"]
