"""EH8xx: whether this version of the engine loads the drafter, and as what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Hit, Need, Rule
from eaglehub.validate.served import first_value, read_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.engines import Engine
    from eaglehub.validate.subject import Subject

_SERVED = (Need.CONFIG, Need.TENSORS, Need.FORMAT, Need.ENGINE)
_DRAFTER = (*_SERVED, Need.DRAFTER)
_SIZES = ("draft_vocab_size", "target_hidden_size", "head_dim", "num_key_value_heads", "attention_bias", "mlp_bias")
_NAMES_SHOWN = 3

RULES = (
    Rule(
        code="EH801",
        title="the wanted layout cannot hold the drafter",
        severity=Severity.ERROR,
        why="Raised by eaglehub convert --to: the layout has no place for a trait of the drafter, and writing it "
        "without would make another drafter.",
        fix="write the vllm layout",
    ),
    Rule(
        code="EH802",
        title="tensor names that the engine does not load",
        severity=Severity.ERROR,
        why="vLLM stops at a name it does not know (model.layers.0... of Automodel, aux_norm_low, a wrapper's prefix)."
        " SGLang passes over it, and what it should have filled stays random.",
        fix="eaglehub convert",
        reports=(
            "NVIDIA-NeMo/Automodel#2841",
            "NVIDIA-NeMo/RL#3960",
            "vllm-project/speculators#360",
            "sgl-project/SpecForge#307",
        ),
        needs=_SERVED,
    ),
    Rule(
        code="EH803",
        title="an architecture that the engine does not have",
        severity=Severity.ERROR,
        why="The engine looks the drafter's class up by this name and refuses others.",
        fix="eaglehub convert",
        reports=("vllm-project/vllm#30987", "vllm-project/vllm#24967", "sgl-project/sglang#33966"),
        needs=_SERVED,
    ),
    Rule(
        code="EH804",
        title="more than this version of the engine can do",
        severity=Severity.ERROR,
        why="Engines learnt the parts of EAGLE-3 and 3.1 one by one, and older versions ignore what they do not know.",
        fix="use a newer version, or another engine",
        reports=(
            "vllm-project/vllm#42764",
            "vllm-project/vllm#46488",
            "vllm-project/vllm#38111",
            "vllm-project/vllm#44322",
            "vllm-project/vllm#46788",
            "sgl-project/sglang#24663",
            "sgl-project/sglang#24620",
            "sgl-project/sglang#18216",
            "sgl-project/sglang#32334",
        ),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH805",
        title="a model_type that the engine takes for something else",
        severity=Severity.ERROR,
        why="vLLM turns a deepseek_v3 drafter into a multi-token prediction model, and cannot recognise a config "
        "without model_type at all.",
        fix="eaglehub convert",
        reports=("vllm-project/vllm#30987",),
        needs=_SERVED,
    ),
    Rule(
        code="EH806",
        title="a target whose hidden states the engine cannot capture",
        severity=Severity.ERROR,
        why="The target's model class must hand out the states that the drafter reads; not all do.",
        fix="use another engine or version",
        reports=("vllm-project/vllm#22152", "vllm-project/vllm#32079", "vllm-project/speculators#266"),
        needs=(*_SERVED, Need.TARGET),
    ),
    Rule(
        code="EH807",
        title="the architecture is of another kind than the tensors",
        severity=Severity.ERROR,
        why="q_norm and k_norm need the qwen3 class: the llama one refuses them, and the qwen3 one serves a drafter "
        "without them as if they were ones.",
        fix="eaglehub convert names the class that fits",
        reports=("vllm-project/vllm#44322", "vllm-project/vllm#43132"),
        needs=_DRAFTER,
    ),
    Rule(
        code="EH808",
        title="the engine reads another size than the drafter has",
        severity=Severity.ERROR,
        why="A key that is absent has a default, in vLLM that of transformers: head_dim becomes hidden_size divided by"
        " the heads, biases that the config does not mention are left out.",
        fix="eaglehub convert writes every size out",
        reports=(
            "SafeAILab/EAGLE#223",
            "SafeAILab/EAGLE#315",
            "vllm-project/speculators#636",
            "SafeAILab/EAGLE#249",
            "xLLM-AI/xllm#1328",
            "NVIDIA/Model-Optimizer#398",
        ),
        needs=_DRAFTER,
    ),
)


def _engine(subject: Subject) -> Engine:
    if subject.engine is None:
        raise ValueError("this check needs an engine")
    return subject.engine


def _names(subject: Subject) -> Iterator[Hit]:
    """Names the engine refuses, and the sources of what it would leave unfilled; one hit for all of them."""
    engine, tensors = _engine(subject), subject.open.tensors
    loaded = {name: engine.loads_as(name) for name in tensors}
    placed = {step.source for step in subject.reading.tensors.values()} | {
        item.name for item in subject.reading.dropped
    }
    unknown = [name for name, place in loaded.items() if place is None and engine.refuses_unknown and name in placed]
    filled = {place for place in loaded.values() if isinstance(place, str)}
    # What the engine has no use for, such as t2d, need not be filled.
    unfilled = [
        str(step.source)
        for name, step in subject.reading.tensors.items()
        if step.source and name not in filled and engine.fills(name)
    ]
    bad = list(dict.fromkeys([*unknown, *unfilled]))
    if bad:
        shown = ", ".join(bad[:_NAMES_SHOWN]) + (
            f" and {len(bad) - _NAMES_SHOWN} more" if len(bad) > _NAMES_SHOWN else ""
        )
        fate = "refuses" if engine.refuses_unknown else "skips"
        yield Hit("EH802", f"{engine.name} {fate} the tensor name{'s' * (len(bad) > 1)} {shown}", where=bad[0])


def _architecture(subject: Subject) -> Iterator[Hit]:
    engine = _engine(subject)
    if not engine.architectures or subject.wrapped:
        return
    name = _named(subject)
    if name is None:
        yield Hit("EH803", "config.json names no architectures", where="config.json: architectures")
    elif name not in engine.architectures:
        yield Hit("EH803", f"{engine.name} has no drafter class {name}", where="config.json: architectures")


def _kind(subject: Subject) -> Iterator[Hit]:
    kind = None if subject.wrapped else _engine(subject).architectures.get(_named(subject) or "")
    found = subject.drafter.architecture
    if kind and kind != found:
        yield Hit(
            "EH807",
            f"{_named(subject)} is a {kind} drafter, the tensors are a {found} one's",
            "config.json: architectures",
        )


def _named(subject: Subject) -> str | None:
    names = subject.config.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None


def _model_type(subject: Subject) -> Iterator[Hit]:
    engine = _engine(subject)
    if not engine.model_types:
        return
    kind = subject.served.get("model_type")
    if kind is None and not subject.wrapped:
        yield Hit("EH805", "config.json names no model_type", where="config.json: model_type")
    elif isinstance(kind, str) and kind in engine.model_types:
        yield Hit("EH805", f"{kind} is {engine.model_types[kind]}", where="config.json: model_type")


def _limits(subject: Subject) -> Iterator[Hit]:
    engine = _engine(subject)
    for limit in engine.limits:
        if limit.traits <= subject.traits:
            since = f"{engine.title} {limit.since} is the first that can" if limit.since else f"no {engine.title} can"
            yield Hit("EH804", f"{engine.name}: {limit.effect}", where=" and ".join(sorted(limit.traits)), fix=since)


def _target_class(subject: Subject) -> Iterator[Hit]:
    engine, target = _engine(subject), subject.target
    names = target.architectures if target else ()
    if engine.targets and names and not engine.targets & set(names):
        yield Hit("EH806", f"{engine.name} cannot capture the hidden states of {names[0]}", where="target config.json")


def _sizes(subject: Subject) -> Iterator[Hit]:
    spoken = {finding.where for finding in subject.reading.findings}
    for key in _SIZES:
        reader, meant = _engine(subject).keys.get(key), getattr(subject.drafter, key)
        if reader is None or meant is None or f"config.json: {key}" in spoken or not _matters(subject, key):
            continue
        value = read_key(subject.served, reader)
        if value != meant:
            origin = "its default" if first_value(subject.served, reader.paths) is None else "the config"
            yield Hit("EH808", f"{key} is {meant}, the engine goes by {origin}, {value}", where=f"config.json: {key}")


def _matters(subject: Subject, key: str) -> bool:
    if key in ("head_dim", "num_key_value_heads", "attention_bias"):
        return subject.drafter.architecture != "mla"
    return key != "target_hidden_size" or subject.drafter.num_aux_hidden_states > 0


CHECKS = (
    Check(_names, _SERVED),
    Check(_architecture, _SERVED),
    Check(_kind, _DRAFTER),
    Check(_model_type, _SERVED),
    Check(_limits, _DRAFTER),
    Check(_target_class, (*_SERVED, Need.TARGET)),
    Check(_sizes, _DRAFTER),
)
