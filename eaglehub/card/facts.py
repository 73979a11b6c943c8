"""What a card can state: the drafter, where it came from, and what was measured of these very bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.card.evidence import EVALUATION_FILE, VERIFICATION_FILE, Evidence, read_provenance, read_report
from eaglehub.checkpoint import open_checkpoint
from eaglehub.checkpoint.hashing import folder_digest
from eaglehub.engines import load_engine
from eaglehub.errors import UnusableInput
from eaglehub.reading import read_drafter
from eaglehub.report.findings import Severity
from eaglehub.serving import SERVERS
from eaglehub.validate import Settings, judge

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.formats.spec import FormatSpec


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a drafter's folder.

    Attributes:
        checkpoint: its files.
        drafter: what they say.
        layout: whose layout they are in.
        misread: why an engine of `serving.SERVERS` would not read it as meant, by engine; empty where it would.
        provenance: `eaglehub.json`, None without one.
        verification: the report of `eaglehub verify`.
        evaluation: the report of `eaglehub evaluate`.
    """

    checkpoint: Checkpoint
    drafter: Drafter
    layout: FormatSpec
    misread: Mapping[str, str]
    provenance: Mapping[str, Any] | None
    verification: Evidence
    evaluation: Evidence

    @property
    def evidence(self) -> dict[str, Evidence]:
        """The reports by file name."""
        return {VERIFICATION_FILE: self.verification, EVALUATION_FILE: self.evaluation}

    @property
    def source(self) -> str:
        """The repository it was made from, where that is known to be one."""
        name = str(self.provenance["source"]["name"]) if self.provenance else ""
        return name if "/" in name else ""

    @property
    def target(self) -> str:
        """The repository of the target it was verified with, where that is known to be one."""
        name = str(self.verification.report["target"]["name"]) if self.verification.report else ""
        return name if name.count("/") == 1 else ""


def read_facts(folder: Path, hashes: Mapping[str, str] | None = None) -> Facts:
    """Read a drafter's folder.

    Args:
        folder: with config.json and weights.
        hashes: SHA-256 of config.json and the weight files, by name, where they are known already.

    Raises:
        UnusableInput: it cannot be read as a drafter, or `eaglehub.json` is damaged.
    """
    checkpoint = open_checkpoint(folder)
    reading = read_drafter(checkpoint)
    if reading.drafter is None:
        error = next(finding for finding in reading.findings if finding.severity is Severity.ERROR)
        raise UnusableInput(error.message, where=error.where or folder.name, fix=f"eaglehub explain {error.code}")
    digest = folder_digest(hashes or checkpoint.hash_files())
    return Facts(
        checkpoint=checkpoint,
        drafter=reading.drafter,
        layout=reading.detection.spec,
        misread={engine: _misread(engine, folder) for engine in SERVERS},
        provenance=read_provenance(folder),
        verification=read_report(folder, VERIFICATION_FILE, digest),
        evaluation=read_report(folder, EVALUATION_FILE, digest),
    )


def _misread(engine: str, folder: Path) -> str:
    """The first error of `validate` for this engine."""
    findings = judge(folder, Settings(engine=load_engine(engine), values=False)).findings
    return next((f"{found.code}, {found.message}" for found in findings if found.severity is Severity.ERROR), "")
