"""The engine specs: well-formed, dated, and held to what vLLM itself does where vLLM is installed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

import eaglehub.engines
from eaglehub.drafter.drafter import Drafter
from eaglehub.engines import ENGINES, load_engine
from eaglehub.formats.spec import load_formats
from eaglehub.resources import read_yaml, resource
from eaglehub.validate.served import first_list, read_key
from tests.drafters.drafter import Drafter as Sample

if TYPE_CHECKING:
    from eaglehub.engines.engine import Engine

FILES = sorted(Path(eaglehub.engines.__file__).parent.glob("*.yaml"))
# Traits that no feature of the drafter gives, see `Subject.traits`.
RELATIONS = {
    *("final_state", "embedding_state", "short_positions", "shared_embedding", "own_head", "quantized_head", "pipeline")
}


def engine(wanted: str) -> Engine:
    loaded = load_engine(wanted)
    assert loaded is not None
    return loaded


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_spec_fits_its_schema(path: Path) -> None:
    schema = json.loads(resource("schemas", "engine-spec.schema.json").read_bytes())
    spec = read_yaml(path)
    Draft202012Validator(schema).validate(spec)
    assert spec["id"] == path.stem


def test_every_spec_is_known() -> None:
    assert {path.stem for path in FILES} == set(ENGINES)
    assert load_engine("none") is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_trait_means_something(path: Path) -> None:
    features = set(_features_of_everything())
    formats = {f"format:{name}" for name in load_formats()}
    for limit in read_yaml(path)["limits"]:
        for trait in limit["traits"]:
            assert trait in features | formats | RELATIONS or trait.startswith("target:"), trait


def _features_of_everything() -> frozenset[str]:
    """Names of all features, whatever drafter they are asked of."""
    names: set[str] = set()
    for mla in (False, True):
        for flag in (False, True):
            drafter = Drafter(
                architecture="mla" if mla else "qwen3",
                hidden_size=1, target_hidden_size=2, vocab_size=3, draft_vocab_size=2, num_hidden_layers=2,
                num_attention_heads=1, num_key_value_heads=1, head_dim=1, intermediate_size=1, hidden_act="silu",
                rms_norm_eps=1e-6, attention_bias=True, mlp_bias=True, rope_theta=1.0, rope_scaling=None,
                max_position_embeddings=1, num_aux_hidden_states=4 * flag, aux_layer_ids=None, fc_norm=True,
                norm_output=True, norm_before_fc=True, norm_before_residual=True, embedding=True, head=True,
                parallel_drafting=True, mask_token_id=1, quantized=True, dtype="BF16",
            )  # fmt: skip
            names |= drafter.traits()
    return frozenset(names)


@pytest.mark.parametrize("name", ["vllm", "tensorrt-llm"])
def test_the_canonical_names_are_loaded_as_themselves(name: str) -> None:
    """SGLang's later layers have another name for their first norm."""
    for drafter in (Sample(layers=2, fc_norm=True, embed=True, input_norm=True), Sample(mla=True)):
        assert {tensor: engine(name).loads_as(tensor) for tensor in drafter.weights()} == {
            tensor: tensor for tensor in drafter.weights()
        }


@pytest.mark.parametrize(
    ("older", "newer", "trait"),
    [
        ("0.21", "0.22", {"fc_norm"}),
        ("0.22", "0.23", {"fc_norm", "mla"}),
        ("0.24.5", "0.25", {"format:speculators", "fc_norm"}),
    ],
)
def test_limits_end(older: str, newer: str, trait: set[str]) -> None:
    def holds(version: str) -> bool:
        return any(limit.traits == trait for limit in engine(f"vllm=={version}").limits)

    assert (holds(older), holds(newer)) == (True, False)


def test_readers_by_version() -> None:
    def readers(version: str) -> dict[str, tuple[str, ...]]:
        return {reader.reader: reader.paths for reader in engine(f"vllm=={version}").layer_ids}

    assert "eagle_config.layer_ids" in readers("0.32")["V2 runner"]
    assert "eagle_config.layer_ids" not in readers("0.25")["V2 runner"]
    assert readers("0.21") == {"V1 runner": ("eagle_aux_hidden_state_layer_ids",)}


CONFIGS: list[dict[str, Any]] = [
    {},
    {"eagle_aux_hidden_state_layer_ids": [2, 6, 9]},
    {"eagle_aux_hidden_state_layer_ids": []},
    {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 8]}},
    {"eagle_config": {"layer_ids": [1, 5, 8]}},
    {"eagle_config": {"layer_ids": [1, 5, 8], "eagle_aux_hidden_state_layer_ids": [3, 4, 5]}},
    {"eagle_aux_hidden_state_layer_ids": [2, 6, 9], "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 8]}},
]


@pytest.mark.vllm
@pytest.mark.parametrize("config", CONFIGS, ids=json.dumps)
def test_layer_ids_are_read_as_vllm_reads_them(config: dict[str, Any]) -> None:
    v2 = pytest.importorskip("vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils")
    v1 = pytest.importorskip("vllm.v1.worker.gpu_model_runner")
    speculative = SimpleNamespace(draft_model_config=SimpleNamespace(hf_config=SimpleNamespace(**config)))
    theirs = {
        "V2 runner": v2.get_eagle3_aux_layers_from_config(speculative),
        "V1 runner": v1.GPUModelRunner._get_eagle3_aux_layers_from_config(
            SimpleNamespace(speculative_config=speculative)
        ),
    }
    ours = {
        reader.reader: tuple(ids) if (ids := first_list(config, reader.paths)) else None
        for reader in engine("vllm==0.32").layer_ids
    }
    assert ours == theirs


@pytest.mark.vllm
def test_architectures_are_those_of_vllm() -> None:
    registry = pytest.importorskip("vllm.model_executor.models.registry").ModelRegistry
    known = set(registry.get_supported_archs())
    for name in engine("vllm==0.32").architectures:
        served = name if name.startswith("Eagle3") or name.endswith("Eagle3") else f"Eagle3{name}"
        assert served in known, name


@pytest.mark.vllm
def test_targets_hand_out_their_states() -> None:
    """The list leaves out what is no language model; every entry must be one that vLLM can capture from."""
    models = pytest.importorskip("vllm.model_executor.models.registry")
    interfaces = pytest.importorskip("vllm.model_executor.models.interfaces")
    checked = 0
    for name in sorted(engine("vllm==0.32").targets):
        try:
            loaded = models.ModelRegistry._try_load_model_cls(name)
        except Exception:  # noqa: BLE001 - some need packages or hardware that are not there
            continue
        if loaded is not None:
            checked += 1
            assert interfaces.supports_eagle3(loaded), name
    assert checked > 20


@pytest.mark.vllm
@pytest.mark.parametrize("model_type", ["llama", "qwen3"])
@pytest.mark.parametrize("key", ["head_dim", "num_key_value_heads"])
def test_defaults_are_those_of_transformers(key: str, model_type: str) -> None:
    transformers = pytest.importorskip("transformers")
    kinds = {"llama": transformers.LlamaConfig, "qwen3": transformers.Qwen3Config}
    config = {"model_type": model_type, "hidden_size": 96, "num_attention_heads": 4}
    theirs = kinds[model_type](**config)
    assert read_key(config, engine("vllm").keys[key]) == getattr(theirs, key)


@pytest.mark.vllm
@pytest.mark.parametrize("key", sorted(engine("vllm").not_null))
def test_null_is_refused_by_transformers(key: str) -> None:
    transformers = pytest.importorskip("transformers")
    with pytest.raises(Exception, match=key):
        transformers.LlamaConfig(**{key: None})
