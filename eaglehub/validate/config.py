"""EH2xx: config.json by itself and against the tensors. Reading the drafter finds most of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eaglehub.formats.config_paths import MISSING, lookup
from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Hit, Need, Rule
from eaglehub.validate.schema import violations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.validate.subject import Subject

_DRAFTER = (Need.CONFIG, Need.TENSORS, Need.FORMAT)
# Keys that a rule of their own speaks of, so that one fault gives one finding.
_OWNED = ("hidden_act", "tie_word_embeddings", "auto_map")
_OWNED_AT_THE_TOP = ("architectures", "model_type", *_OWNED)
_OWN_WORD = {"eagle_aux_hidden_state_layer_ids": "EH705"}

RULES = (
    Rule(
        code="EH201",
        title="a config value is missing or of the wrong kind",
        severity=Severity.ERROR,
        why="Engines read these keys without checking them: a string for a number or a draft vocabulary of 0 shows up "
        "as a crash deep inside, or as a drafter trained for nothing.",
        fix="correct the value; eaglehub schema native-config says what is allowed",
        reports=("NVIDIA-NeMo/Automodel#2260", "vllm-project/speculators#569"),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH202",
        title="the config contradicts the tensors",
        severity=Severity.ERROR,
        why="Engines build the drafter from the config and load what fits: 40 layers of which 39 stay random, heads of"
        " another width, a vocabulary of the wrong size. Much of that raises nothing.",
        fix="eaglehub convert, which goes by the tensors",
        reports=(
            "sgl-project/SpecForge#129",
            "vllm-project/speculators#812",
            "SafeAILab/EAGLE#223",
            "vllm-project/speculators#134",
            "vllm-project/speculators#188",
            "vllm-project/speculators#636",
        ),
        needs=_DRAFTER,
        mended=True,
    ),
    Rule(
        code="EH203",
        title="two spellings of RoPE that disagree",
        severity=Severity.ERROR,
        why="transformers 5 moved rope_theta into rope_parameters; with both present, it depends on the reader which "
        "one positions are computed with.",
        fix="keep one, or eaglehub convert --rope-theta",
        reports=("wejoncy/sfllm#32", "pytorch/executorch#20149"),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH204",
        title="an activation that no engine has",
        severity=Severity.ERROR,
        why="The drafter classes of all engines know silu only; a config inherited from a gemma target says otherwise.",
        fix="train the drafter with silu",
        needs=_DRAFTER,
    ),
    Rule(
        code="EH205",
        title="layer_types are the target's, not the drafter's",
        severity=Severity.ERROR,
        why="The list must be as long as the drafter is deep, and a sliding_attention in it makes vLLM serve a drafter"
        " with a window that it was not trained with.",
        fix="eaglehub convert, or remove layer_types",
        reports=("vllm-project/speculators#684",),
        needs=_DRAFTER,
        mended=True,
    ),
    Rule(
        code="EH206",
        title="quantization_config and scale tensors do not go together",
        severity=Severity.ERROR,
        why="A quantised target's config copied into the drafter makes the engine look for scales that are not there; "
        "scales without the config are unknown tensors.",
        fix="eaglehub convert drops an inherited quantization_config",
        reports=("vllm-project/vllm#28435", "vllm-project/vllm#18290", "vllm-project/vllm#37280"),
        needs=_DRAFTER,
        mended=True,
    ),
    Rule(
        code="EH207",
        title="trained with another RoPE base than declared",
        severity=Severity.WARNING,
        why="Several trainers rotated with base 10000 whatever rope_theta said. Measured on published heads, the true "
        "base raised the acceptance length from 2.37 to 2.56.",
        fix="eaglehub convert --rope-theta 10000 if acceptance is low",
        reports=("sgl-project/SpecForge#270", "sgl-project/SpecForge#265", "wejoncy/sfllm#32"),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH208",
        title="tie_word_embeddings is true for a drafter with a head of its own",
        severity=Severity.WARNING,
        why="The key was inherited from the target. SGLang and transformers then use the embedding for the head.",
        fix="eaglehub convert writes false",
        reports=(
            "sgl-project/SpecForge#139",
            "sgl-project/SpecForge#140",
            "NVIDIA-NeMo/Automodel#2319",
            "QwenLM/Qwen3-VL-Embedding#89",
            "vllm-project/vllm#53020",
        ),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH209",
        title="a sliding window that has no effect",
        severity=Severity.WARNING,
        why="sliding_window alone does nothing: a llama drafter needs layer_types, a qwen3 one use_sliding_window and "
        "max_window_layers. The drafter is served with full attention, and its acceptance falls with the context.",
        fix="write layer_types, or remove sliding_window if it was trained with full attention",
        reports=("Blackwellboy/model-serving-minefield#107", "NVIDIA/TensorRT-LLM#14200"),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH210",
        title="a RoPE base that is lost on loading",
        severity=Severity.ERROR,
        why="transformers lets a rope_scaling replace rope_parameters as a whole; a base that stands only in the "
        "latter silently becomes 10000.",
        fix="eaglehub convert, or write rope_theta at the top level",
        reports=("vllm-project/speculators#574",),
        needs=(Need.CONFIG,),
    ),
    Rule(
        code="EH211",
        title="a null where transformers demands a value",
        severity=Severity.ERROR,
        why="The strict config classes of transformers 5 refuse the whole config for one null.",
        fix="remove the key or give it a value",
        reports=("NVIDIA/Model-Optimizer#1417",),
        needs=(Need.CONFIG, Need.ENGINE),
    ),
)


def _schema(subject: Subject) -> Iterator[Hit]:
    """What the JSON Schema of the format says; null counts as absent, as it does to every reader."""
    wrapped = subject.format.layer_config != ""
    config = {key: value for key, value in subject.config.items() if value is not None}
    for path, message in violations(config, "speculators-config" if wrapped else "native-config"):
        key = path.rpartition(".")[2]
        if path and key not in _OWNED and path not in _OWNED_AT_THE_TOP:
            yield Hit(_OWN_WORD.get(key, "EH201"), f"{path} {message}", where=f"config.json: {path}")


def _tied(subject: Subject) -> Iterator[Hit]:
    if subject.flat_config.get("tie_word_embeddings") is not True or "lm_head.weight" not in subject.reading.tensors:
        return
    effect = subject.engine.tied_head if subject.engine else ""
    yield Hit(
        "EH208",
        f"tie_word_embeddings is true, but the file has a head of its own{f'; {effect}' if effect else ''}",
        where="config.json: tie_word_embeddings",
        severity=Severity.ERROR if effect else None,
    )


def _window(subject: Subject) -> Iterator[Hit]:
    config = subject.flat_config
    kinds = config.get("layer_types")
    window = config.get("sliding_window")
    windowed = isinstance(kinds, list) and "sliding_attention" in kinds
    if not isinstance(window, int) or windowed or config.get("use_sliding_window") is False:
        return
    first_windowed = config.get("max_window_layers", 28)
    qwen = str(config.get("model_type")).startswith("qwen") and config.get("use_sliding_window") is True
    if not (qwen and isinstance(first_windowed, int) and first_windowed < _depth(config)):
        yield Hit(
            "EH209",
            f"sliding_window is {window}, but nothing makes it effective: full attention is served",
            where="config.json: sliding_window",
        )


def _depth(config: Mapping[str, Any]) -> int:
    depth = config.get("num_hidden_layers")
    return depth if isinstance(depth, int) else 1


def _lost_base(subject: Subject) -> Iterator[Hit]:
    config = subject.flat_config
    base = lookup(config, "rope_parameters.rope_theta")
    scaling = config.get("rope_scaling")
    if base in (MISSING, None, 10000, 10000.0) or not isinstance(scaling, Mapping) or not scaling:
        return
    if "rope_theta" not in scaling and config.get("rope_theta") is None:
        yield Hit(
            "EH210",
            f"rope_parameters has base {base}, but rope_scaling replaces it and has none: 10000 is used",
            where="config.json: rope_parameters.rope_theta",
        )


def _nulls(subject: Subject) -> Iterator[Hit]:
    for key in subject.engine.not_null if subject.engine else ():
        if subject.served.get(key, MISSING) is None:
            yield Hit("EH211", f"{key} is null", where=f"config.json: {key}")


CHECKS = (
    Check(_schema, (Need.FORMAT,)),
    Check(_tied, (Need.FORMAT,)),
    Check(_window, (Need.FORMAT,)),
    Check(_lost_base, (Need.FORMAT,)),
    Check(_nulls, (Need.FORMAT, Need.ENGINE)),
)
