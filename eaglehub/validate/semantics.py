"""EH7xx: what the drafter means, and whether the engine takes it so. Reading finds 701 to 710."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.drafter.drafter import FLAGS
from eaglehub.drafter.native import TOP_LEVEL
from eaglehub.formats.config_paths import lookup
from eaglehub.reading.layer_ids import NESTED, V2_NESTED
from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Hit, Need, Rule
from eaglehub.validate.served import first_list, first_number, read_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.engines.engine import LayerIdReader
    from eaglehub.validate.subject import Subject

_FORMAT = (Need.CONFIG, Need.TENSORS, Need.FORMAT)
_SERVED = (*_FORMAT, Need.DRAFTER, Need.ENGINE)
# The rule that already speaks of a flag that cannot be told or contradicts the tensors.
_FLAG_RULES = {
    "fc_norm": "EH706",
    "norm_before_fc": "EH710",
    "norm_output": "EH701",
    "norm_before_residual": "EH702",
}

RULES = (
    Rule(
        code="EH701",
        title="which state is fed back cannot be told",
        severity=Severity.ERROR,
        why="SpecForge up to 0.2.0 means something else by norm_output than engines do, and no tensor shows it. The "
        "wrong feedback costs acceptance from the second draft token on.",
        fix="eaglehub convert --feedback pre-norm or post-norm",
        reports=("sgl-project/SpecForge#879", "NVIDIA-NeMo/Automodel#2897", "vllm-project/vllm#42764"),
        needs=_FORMAT,
    ),
    Rule(
        code="EH702",
        title="norm_before_residual is missing where readers disagree",
        severity=Severity.ERROR,
        why="speculators takes a missing key for false, vLLM's loader of the same format for true.",
        fix="eaglehub convert --norm-before-residual or --no-norm-before-residual",
        reports=("vllm-project/vllm#38111",),
        needs=_FORMAT,
    ),
    Rule(
        code="EH703",
        title="no aux layer ids",
        severity=Severity.WARNING,
        why="Engines fall back to layers 2, L//2 and L-3 without a word. A published 70B drafter trained on others was"
        " accepted 1.2 % of the time, and 58.9 % with the right ones.",
        fix="eaglehub convert --target, or --aux-layer-ids if it was trained on others",
        reports=("vllm-project/vllm#50170", "NVIDIA-NeMo/Automodel#2256", "vllm-project/speculators#569"),
        needs=_FORMAT,
    ),
    Rule(
        code="EH704",
        title="the convention of the aux layer ids is in doubt",
        severity=Severity.WARNING,
        why="An id means the state that enters a layer to vLLM and the one that leaves it to SGLang and most trainers."
        " Ids that are off by one load and serve, at half the acceptance or less.",
        fix="eaglehub convert --aux-id-convention in or out",
        reports=("sgl-project/sglang#25454", "vllm-project/vllm#43671", "SafeAILab/EAGLE#239", "NickL77/BaldEagle#18"),
        needs=_FORMAT,
    ),
    Rule(
        code="EH705",
        title="aux layer ids that cannot be right",
        severity=Severity.ERROR,
        why="Engines sort them and remove repetitions: fewer ids than fc has blocks is a crash, a repeated one too.",
        fix="eaglehub convert --aux-layer-ids",
        reports=("NVIDIA-NeMo/Automodel#2256", "vllm-project/vllm#54526", "vllm-project/speculators#1065"),
        needs=_FORMAT,
    ),
    Rule(
        code="EH706",
        title="fc_norm and its tensors disagree",
        severity=Severity.ERROR,
        why="With the flag and without the tensors the norms stay at one: EAGLE 3.1 that drafts worse than EAGLE-3. "
        "With the tensors and without the flag vLLM refuses the file. Converters have lost either.",
        fix="eaglehub convert sets a forgotten flag; lost tensors need the original",
        reports=("NVIDIA-NeMo/Automodel#2897", "vllm-project/speculators#1114", "lightseekorg/tokenspeed#751"),
        needs=_FORMAT,
        mended=True,
    ),
    Rule(
        code="EH707",
        title="aux layer ids are not ascending",
        severity=Severity.ERROR,
        why="Engines capture in ascending order whatever the list says, so fc's column blocks get each other's states.",
        fix="eaglehub convert sorts ids and columns together",
        reports=("sgl-project/sglang#25454",),
        needs=_FORMAT,
        mended=True,
    ),
    Rule(
        code="EH708",
        title="two lists of aux layer ids that disagree",
        severity=Severity.ERROR,
        why="vLLM goes by the top level, SGLang by eagle_config: the same file is two drafters.",
        fix="remove the list that is wrong",
        reports=("sgl-project/sglang#25454",),
        needs=_FORMAT,
    ),
    Rule(
        code="EH709",
        title="a drafter without aux states",
        severity=Severity.WARNING,
        why="vLLM's V2 runner captures aux states whatever use_aux_hidden_state says, and hands the drafter three "
        "states where it reads one.",
        fix="VLLM_USE_V2_MODEL_RUNNER=0",
        reports=("vllm-project/vllm#40551", "vllm-project/vllm#40656", "vllm-project/vllm#27688"),
        needs=(*_FORMAT, Need.ENGINE),
    ),
    Rule(
        code="EH710",
        title="norm_before_fc and its tensor disagree",
        severity=Severity.ERROR,
        why="input_norm without the flag is dropped in silence, the flag without the tensor norms with ones.",
        fix="eaglehub convert sets a forgotten flag; a lost tensor needs the original",
        reports=("vllm-project/vllm#38111", "vllm-project/speculators#337", "sgl-project/sglang#32334"),
        needs=_FORMAT,
        mended=True,
    ),
    Rule(
        code="EH711",
        title="the engine takes other layers than the aux layer ids mean",
        severity=Severity.ERROR,
        why="vLLM's V2 runner reads ids at the top level only and falls back to its default, its V1 runner takes "
        "nested ids one layer too low, SGLang reads nested ids only. Nothing is logged.",
        fix="eaglehub convert",
        reports=("vllm-project/vllm#50170", "sgl-project/sglang#25454", "lightseekorg/tokenspeed#526"),
        needs=_SERVED,
    ),
    Rule(
        code="EH712",
        title="the engine counts another number of aux states",
        severity=Severity.ERROR,
        why="vLLM's llama and MLA drafters do not count the ids at the top level: without num_aux_hidden_states, fc is"
        " built for three states and does not load.",
        fix="eaglehub convert writes num_aux_hidden_states",
        reports=("vllm-project/vllm#54526", "vllm-project/speculators#1065", "vllm-project/vllm#54598"),
        needs=_SERVED,
    ),
    Rule(
        code="EH713",
        title="the engine reads another value of an EAGLE 3.1 flag",
        severity=Severity.ERROR,
        why="The key stands where this engine does not look, so its default holds: a norm is left out or the wrong "
        "state fed back, with tensors that load all the same.",
        fix="eaglehub convert",
        reports=("vllm-project/vllm#42143", "vllm-project/vllm#38111", "vllm-project/speculators#610"),
        needs=_SERVED,
    ),
    Rule(
        code="EH714",
        title="fc_norm together with norm_before_fc",
        severity=Severity.ERROR,
        why="vLLM applies both, TensorRT-LLM one of them, speculators refuses the file, and no trainer makes it.",
        fix="keep the norm that it was trained with",
        reports=("vllm-project/speculators#337",),
        needs=(*_FORMAT, Need.DRAFTER),
    ),
)


def _layer_ids(subject: Subject) -> Iterator[Hit]:
    """One hit at most: every reader of the engine must come to the layers that the ids mean."""
    place = next((path for path in (TOP_LEVEL, NESTED, V2_NESTED) if first_list(subject.config, (path,))), None)
    meant = subject.drafter.aux_layer_ids
    if not subject.engine or not place or subject.drafter.num_aux_hidden_states == 0:
        return
    faults = []
    for reader in subject.engine.layer_ids:
        raw = first_list(subject.served, reader.paths)
        if raw is None:
            faults.append(f"the {reader.reader} does not look there and takes its default")
        elif meant and sorted(_entering(raw, reader, subject)) != list(meant):
            faults.append(f"the {reader.reader} takes them for {_entering(raw, reader, subject)}")
    if faults:
        to = " --to sglang" if subject.engine.id == "sglang" else ""
        ids = f"meaning the states that enter layers {list(meant)}" if meant else f"{lookup(subject.config, place)}"
        yield Hit(
            "EH711",
            f"aux layer ids at {place}, {ids}: {'; '.join(faults)}",
            where=f"config.json: {place}",
            fix=f"eaglehub convert{to}",
        )


def _entering(raw: list[int], reader: LayerIdReader, subject: Subject) -> list[int]:
    """The IN ids that a reader makes of a list; SGLang's models add one, with exceptions by the target's kind."""
    target = subject.target
    last = target is not None and target.model_type == "gpt_oss" and max(raw) == target.num_hidden_layers
    if reader.convention == "in" or last or (subject.latent_target and raw[0] != 1):
        return list(raw)
    return [layer + 1 for layer in raw]


def _count(subject: Subject) -> Iterator[Hit]:
    drafter = subject.drafter
    for counter in subject.engine.num_aux if subject.engine else ():
        if drafter.architecture not in counter.kinds or drafter.num_aux_hidden_states == 0:
            continue
        number = first_number(subject.served, counter.paths)
        listed = first_list(subject.served, counter.lists)
        count = number if number is not None else len(listed) if listed else 3
        if count != drafter.num_aux_hidden_states:
            yield Hit(
                "EH712",
                f"fc reads {drafter.num_aux_hidden_states} aux states, the engine counts {count}",
                where="config.json: num_aux_hidden_states",
            )


def _flags(subject: Subject) -> Iterator[Hit]:
    spoken = {finding.code for finding in subject.reading.findings}
    for flag in FLAGS:
        reader = subject.engine.keys.get(flag) if subject.engine else None
        if reader is None or _FLAG_RULES[flag] in spoken:
            continue
        value, meant = read_key(subject.served, reader), getattr(subject.drafter, flag)
        if bool(value) != meant:
            yield Hit(
                "EH713",
                f"{flag} is {str(meant).lower()}, the engine reads {str(bool(value)).lower()} from "
                f"{' or '.join(reader.paths)}",
                where=f"config.json: {flag}",
            )


def _both_norms(subject: Subject) -> Iterator[Hit]:
    if subject.drafter.fc_norm and subject.drafter.norm_before_fc:
        yield Hit("EH714", "fc_norm and norm_before_fc are both set", where="config.json: norm_before_fc")


CHECKS = (
    Check(_layer_ids, _SERVED),
    Check(_count, _SERVED),
    Check(_flags, _SERVED),
    Check(_both_norms, (*_FORMAT, Need.DRAFTER)),
)
