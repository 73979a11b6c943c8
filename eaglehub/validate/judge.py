"""Judging one drafter: every check that can be made is made, and nothing hides anything else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eaglehub.checkpoint.folder import LocalFolder
from eaglehub.checkpoint.layout import CONFIG
from eaglehub.report.findings import Finding, Severity
from eaglehub.validate.rules import CATALOGUE, CHECKS
from eaglehub.validate.subject import Settings, Subject, open_subject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from eaglehub.checkpoint.folder import Folder
    from eaglehub.validate.rule import Check, Hit, Rule

__all__ = ["Judgement", "Settings", "judge"]

_ORDER = list(Severity)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with one drafter.

    Attributes:
        name: as the user gave it where that tells nothing of this machine, else the folder's own name.
        title: as the user gave it; of a folder on the Hub, with its commit.
        folder: what was judged.
        files: what is in it.
        config_text: config.json as it is on disk, empty when it cannot be read; for line numbers.
        tensor_files: tensor name to the file that holds it.
        format: id of the format, empty when unknown.
        findings: sorted by code.
        skipped: rules that could not be checked, with the reason.
        exit_code: 0, or that of the input or machine problem met on the way.
    """

    name: str
    title: str
    folder: Folder
    files: Collection[str]
    config_text: str
    tensor_files: Mapping[str, str]
    format: str
    findings: tuple[Finding, ...]
    skipped: Mapping[str, str]
    exit_code: int


def judge(place: Path | Folder, settings: Settings) -> Judgement:
    """Judge the drafter there: in a folder, its config.json, or one weight file.

    Raises:
        UsageProblem: one of the user's answers contradicts what the file says for certain.
        HubProblem: the folder is on the Hub, which refused or failed.
    """
    subject = open_subject(place, settings)
    hits = _check(subject)
    skipped = _skipped(subject)
    found = [*map(_finding, subject.hits), *map(_finding, hits), *_from_reading(subject, skipped)]
    tolerated = settings.engine.tolerates if settings.engine else {}
    findings = _unique(_tolerant(finding, tolerated) for finding in found)
    checkpoint = subject.checkpoint
    return Judgement(
        name=_name(place),
        title=str(place) if isinstance(place, Path) else f"{place.name}@{place.revision}",
        folder=subject.folder,
        files=subject.files,
        config_text=subject.folder.text(CONFIG) if subject.raw_config is not None else "",
        tensor_files={name: info.file for name, info in checkpoint.tensors.items()} if checkpoint else {},
        format=subject.read.detection.spec.id if subject.read else "",
        findings=tuple(sorted(findings, key=lambda finding: (finding.code, finding.where))),
        skipped=skipped,
        exit_code=subject.exit_code,
    )


def _name(place: Path | Folder) -> str:
    if not isinstance(place, Path):
        return place.name
    return place.as_posix() if not place.is_absolute() and ".." not in place.parts else LocalFolder(place).name


def _check(subject: Subject) -> list[Hit]:
    hits: list[Hit] = []
    for check in CHECKS:
        if not any(need in subject.lacking for need in check.needs):
            hits += subject.attempt(partial(_all, check, subject)) or []
    return hits


def _all(check: Check, subject: Subject) -> list[Hit]:
    return list(check.function(subject))


def _skipped(subject: Subject) -> dict[str, str]:
    """Rules that miss something they need; the first reason is enough."""
    reasons = {
        code: next((subject.lacking[need] for need in rule.needs if need in subject.lacking), "")
        for code, rule in CATALOGUE.items()
    }
    return {code: reason for code, reason in reasons.items() if reason} | {"EH801": "concerns eaglehub convert"}


def _finding(hit: Hit) -> Finding:
    rule = CATALOGUE[hit.code]
    return Finding(hit.code, hit.severity or rule.severity, hit.message, hit.where, hit.fix or rule.fix)


def _from_reading(subject: Subject, skipped: Mapping[str, str]) -> list[Finding]:
    """Reading's findings, of the file as it stands: what a conversion would put right is not right yet."""
    return [
        _as_it_stands(finding, CATALOGUE[finding.code])
        for finding in (subject.read.findings if subject.read else ())
        if finding.code not in skipped
    ]


def _as_it_stands(finding: Finding, rule: Rule) -> Finding:
    severity = rule.severity if rule.mended else finding.severity
    return replace(finding, severity=severity, fix=finding.fix or rule.fix)


def _tolerant(finding: Finding, tolerated: Mapping[str, str]) -> Finding:
    """A note in place of an error where the engine does not mind."""
    if finding.code not in tolerated:
        return finding
    return replace(finding, severity=Severity.NOTE, message=f"{finding.message} ({tolerated[finding.code]})")


def _unique(findings: Iterable[Finding]) -> list[Finding]:
    """One finding a code and place, the gravest; checks and reading may see the same thing."""
    kept: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        place = (finding.code, finding.where)
        if place not in kept or _ORDER.index(finding.severity) < _ORDER.index(kept[place].severity):
            kept[place] = finding
    return list(kept.values())
