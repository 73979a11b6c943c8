"""EH9xx: what must not be published: code, pickles, paths of somebody's machine, secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eaglehub.checkpoint.layout import PICKLE_SUFFIXES
from eaglehub.formats.config_paths import flat
from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Hit, Need, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.validate.subject import Subject

_TEXT_SUFFIXES = (".json", ".md", ".txt", ".yaml", ".yml", ".toml", ".jinja", ".cfg", ".env")
_TEXT_BYTES = 1 << 20
LOCAL_PATH = re.compile(r"(?:file://)?(?:/|~/|\.{1,2}/|[A-Za-z]:[\\/]|\\\\)[\w.-]+(?:[/\\].*)?")
_SECRETS = {
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{30,}"),
    "a GitHub token": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_\w{40,}"),
    "an AWS key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "an API key": re.compile(r"\bsk-[A-Za-z0-9_-]{20,}"),
    "a Weights & Biases key": re.compile(r"(?i)\bwandb[\w ]*key\W{1,4}[0-9a-f]{40}\b"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
}

RULES = (
    Rule(
        code="EH901",
        title="auto_map names code to run",
        severity=Severity.ERROR,
        why="Whoever loads the config with trust_remote_code runs code from wherever it points; vLLM has done so even "
        "without the flag. A drafter needs none.",
        fix="remove auto_map; eaglehub convert does",
        reports=("NVIDIA/Model-Optimizer#1357", "vllm-project/speculators#1065", "NVIDIA/TensorRT-LLM#15833"),
        needs=(Need.CONFIG,),
    ),
    Rule(
        code="EH902",
        title="weights as a pickle",
        severity=Severity.WARNING,
        why="A pickle can run code on the machine that loads it, and engines load it more slowly. This one holds plain"
        " tensors only.",
        fix="eaglehub convert writes safetensors",
        reports=("huggingface/optimum-intel#1468", "vllm-project/vllm-ascend#2667"),
        needs=(Need.TENSORS,),
    ),
    Rule(
        code="EH903",
        title="a path of somebody's machine",
        severity=Severity.WARNING,
        why="It tells strangers about a file system, and an engine that follows it finds nothing.",
        fix="write the repository's name, or remove the key",
        reports=("vllm-project/speculators#1065",),
        needs=(Need.CONFIG,),
    ),
    Rule(
        code="EH904",
        title="something that looks like a secret",
        severity=Severity.ERROR,
        why="A published token is used by somebody else within minutes.",
        fix="remove it and revoke it",
    ),
    Rule(
        code="EH905",
        title="Python code beside the weights",
        severity=Severity.ERROR,
        why="Code in a model repository is run by whoever trusts it. A drafter is a config and tensors.",
        fix="remove the file; eaglehub convert leaves it behind",
        reports=("NVIDIA/Model-Optimizer#1357", "NVIDIA/Model-Optimizer#1272"),
    ),
)


def _auto_map(subject: Subject) -> Iterator[Hit]:
    for path in ("auto_map", "transformer_layer_config.auto_map"):
        if any(key == path or key.startswith(f"{path}.") for key, _ in flat(subject.config)):
            yield Hit("EH901", f"{path} names code to run", where=f"config.json: {path}")


def _pickles(subject: Subject) -> Iterator[Hit]:
    for file in subject.open.weight_files:
        if file.endswith(PICKLE_SUFFIXES):
            yield Hit("EH902", f"{file} is a pickle", where=file)


def _local_paths(subject: Subject) -> Iterator[Hit]:
    for key, value in flat(subject.config):
        if isinstance(value, str) and LOCAL_PATH.fullmatch(value):
            yield Hit("EH903", f"{key} is a path of the machine it was made on", where=f"config.json: {key}")


def _secrets(subject: Subject) -> Iterator[Hit]:
    for file in subject.files:
        if not file.endswith(_TEXT_SUFFIXES) or subject.files[file] > _TEXT_BYTES:
            continue
        for line, what in find_secrets(subject.folder.text(file)):
            yield Hit("EH904", f"line {line} holds what looks like {what}", where=file)


def find_secrets(text: str) -> Iterator[tuple[int, str]]:
    """What looks like a secret, with its line from 1 on; one of a kind."""
    for what, pattern in _SECRETS.items():
        if found := pattern.search(text):
            yield text.count("\n", 0, found.start()) + 1, what


def _code(subject: Subject) -> Iterator[Hit]:
    for file in subject.files:
        if file.endswith(".py"):
            yield Hit("EH905", f"{file} is code", where=file)


CHECKS = (
    Check(_auto_map, (Need.CONFIG,)),
    Check(_pickles, (Need.TENSORS,)),
    Check(_local_paths, (Need.CONFIG,)),
    Check(_secrets),
    Check(_code),
)
