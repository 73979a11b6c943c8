"""From the canonical description to a layout: names, vocabulary map and config as its format spec says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.drafter.native import TOP_LEVEL, native_config
from eaglehub.formats.config_paths import lookup, put, take
from eaglehub.plan.operations import MaskFromOffsets
from eaglehub.plan.plan import TensorStep
from eaglehub.report.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.target import Target
    from eaglehub.formats.spec import FormatSpec, Writer
    from eaglehub.reading import Reading


def _writer(spec: FormatSpec) -> Writer:
    if spec.writer is None:
        raise ValueError(f"{spec.id} is not a format that can be written")
    return spec.writer


def inexpressible(drafter: Drafter, spec: FormatSpec) -> list[Finding]:
    """An error for each trait of the drafter that the layout has no place for."""
    cannot = _writer(spec).cannot
    traits = sorted(drafter.traits() & set(cannot))
    return [
        Finding("EH801", Severity.ERROR, f"the {spec.id} layout cannot hold this drafter: {cannot[trait]}", where=trait)
        for trait in traits
    ]


def layout_tensors(reading: Reading, drafter: Drafter, spec: FormatSpec) -> list[TensorStep]:
    """The output's tensors under the layout's names, in canonical order.

    Raises:
        ValueError: a canonical tensor has no name there although nothing in `cannot` says so: a hole in the spec.
    """
    writer = _writer(spec)
    steps = []
    for canonical, step in {**reading.tensors, **_companions(reading, drafter, writer)}.items():
        name = spec.source_name(canonical)
        if name is None:
            raise ValueError(f"format spec {spec.id} has no name for {canonical}")
        steps.append(step.named(name))
    return steps


def _companions(reading: Reading, drafter: Drafter, writer: Writer) -> dict[str, TensorStep]:
    """Tensors that say again what others say, where the layout wants them: the source's own when it has them."""
    vocab = (drafter.vocab_size,)
    reason = "this layout carries a map even for a full vocabulary"
    wanted = {}
    if writer.vocab_map["d2t"] == "always" and not drafter.pruned:
        wanted["d2t"] = TensorStep("d2t", None, "I64", vocab, reason=reason)
    if writer.vocab_map["t2d"] == "always" and not drafter.pruned:
        wanted["t2d"] = TensorStep("t2d", None, "BOOL", vocab, fill=1, reason=reason)
    if writer.vocab_map["t2d"] != "never" and drafter.pruned:
        wanted["t2d"] = reading.tensors["d2t"].then(MaskFromOffsets(drafter.vocab_size))
    if writer.twin_norms:
        for layer in range(1, drafter.num_hidden_layers):
            wanted[f"layers.{layer}.hidden_norm.weight"] = reading.tensors[f"layers.{layer}.input_layernorm.weight"]
    return {name: _own(reading.companions.get(name), step) for name, step in wanted.items()}


def _own(found: TensorStep | None, wanted: TensorStep) -> TensorStep:
    return found if found and (found.dtype, found.shape) == (wanted.dtype, wanted.shape) else wanted


def layout_config(
    drafter: Drafter, spec: FormatSpec, source: Mapping[str, Any], target: Target | None, findings: list[Finding]
) -> dict[str, Any]:
    """The output's config.json; what cannot be written is added to `findings`."""
    writer = _writer(spec)
    config = native_config(drafter)
    _place_flags(config, drafter, writer)
    _place_layer_ids(config, drafter, writer, target, findings)
    for path in writer.omit:
        take(config, path)
    for path, value in writer.add.items():
        put(config, path, value)
    if writer.verifier:
        _name_verifier(config, source, target, findings)
    named = {"architectures": [writer.architectures[drafter.architecture]]}
    config = named | {"model_type": writer.model_type[drafter.architecture]} | config
    return _nest(config, drafter, writer) if writer.nest else config


def layout_reasons(spec: FormatSpec) -> dict[str, str]:
    """Why this layout adds, moves or leaves out config keys."""
    writer = _writer(spec)
    left_out = dict.fromkeys(writer.omit, f"the {spec.id} layout has no such key")
    added = dict.fromkeys(writer.add, f"part of the {spec.id} layout")
    ids = dict.fromkeys(writer.layer_ids, f"where the {spec.id} layout keeps the ids")
    verifier = {"speculators_config.verifier": "from --target"} if writer.verifier else {}
    nested = {writer.nest: f"where the {spec.id} layout keeps the layer's config"} if writer.nest else {}
    moved = dict.fromkeys(writer.nested_keys, f"moved to {writer.nest}") if writer.nest else {}
    return left_out | added | ids | verifier | nested | moved


def _place_flags(config: dict[str, Any], drafter: Drafter, writer: Writer) -> None:
    """Where the layout keeps a flag and when it leaves it out; flags it does not mention stay as they are."""
    for flag, habit in writer.flags.items():
        value = getattr(drafter, flag)
        if habit == "when_true" and not value:
            take(config, flag)
        elif habit == "always_also_nested" or (habit == "nested_when_true" and value):
            put(config, f"eagle_config.{flag}", value)


def _place_layer_ids(
    config: dict[str, Any], drafter: Drafter, writer: Writer, target: Target | None, findings: list[Finding]
) -> None:
    ids = drafter.aux_layer_ids
    if not ids:
        return
    for path, convention in writer.layer_ids.items():
        raw = convention == "in" or (convention == "sglang" and _takes_raw(drafter, writer, target))
        if convention == "sglang" and raw and ids[0] == 1:
            findings.append(
                Finding(
                    "EH801", Severity.ERROR, "SGLang adds one to the ids of this target when the first is 1", where=path
                )
            )
        if not raw and ids[0] == 0:
            findings.append(
                Finding(
                    "EH801",
                    Severity.ERROR,
                    "the embedding (IN id 0) has no OUT id, which this layout needs",
                    where=path,
                )
            )
        put(config, path, list(ids) if raw else [value - 1 for value in ids])
    if TOP_LEVEL not in writer.layer_ids:
        take(config, TOP_LEVEL)


def _takes_raw(drafter: Drafter, writer: Writer, target: Target | None) -> bool:
    """Without a target in hand, an MLA drafter is taken to serve an MLA target."""
    return target.model_type in writer.raw_targets if target else drafter.architecture == "mla"


def _name_verifier(
    config: dict[str, Any], source: Mapping[str, Any], target: Target | None, findings: list[Finding]
) -> None:
    own = lookup(source, "speculators_config")
    if target:
        verifier = {"name_or_path": target.name, "architectures": list(target.architectures)}
        put(config, "speculators_config.verifier", verifier)
    elif isinstance(own, dict):
        put(config, "speculators_config", own)
    else:
        findings.append(
            Finding(
                "EH801",
                Severity.ERROR,
                "the layout names its verifier, and vLLM refuses a file that does not",
                where="speculators_config.verifier",
                fix="pass --target",
            )
        )


def _nest(config: dict[str, Any], drafter: Drafter, writer: Writer) -> dict[str, Any]:
    """The layer's keys lie nested there, and so does everything that the drafter's config had besides."""
    keys = [key for key in config if key in writer.nested_keys or key in drafter.extra]
    nested = {key: config[key] for key in keys}
    rest = {key: value for key, value in config.items() if key not in nested}
    return rest | {writer.nest: nested}
