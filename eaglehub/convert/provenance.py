"""`eaglehub.json`: where converted weights come from, written beside them; deterministic and free of machine paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub import __version__
from eaglehub.report.report import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.convert.convert import Conversion

PROVENANCE_FILE = "eaglehub.json"


def provenance(conversion: Conversion, hashes: Mapping[str, str]) -> dict[str, Any]:
    """The document (`schemas/provenance.schema.json`).

    Args:
        conversion: with a plan.
        hashes: sha256 of each source file that was read.
    """
    plan, reading, checkpoint = conversion.plan, conversion.reading, conversion.checkpoint
    if plan is None:
        raise ValueError("only a planned conversion has a provenance")
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "eaglehub", "version": __version__},
        "source": {"name": checkpoint.name, "revision": checkpoint.revision, "files": dict(sorted(hashes.items()))},
        "detection": {"format": plan.source, "evidence": list(reading.detection.evidence)},
        "resolutions": [resolution.to_json() for resolution in reading.resolutions],
        "layout": plan.layout,
        "config": plan.config,
        "plan": plan.digest,
    }
