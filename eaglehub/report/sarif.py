"""SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TextIO

from eaglehub import __version__
from eaglehub.report.located import located

if TYPE_CHECKING:
    from eaglehub.report.findings import Finding
    from eaglehub.report.located import Judged, Place, RuleFacts
    from eaglehub.report.report import Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def write_sarif(report: Report, stream: TextIO) -> None:
    """Write one run; each finding is a result with a fingerprint that survives a change of lines."""
    source = located(report)
    rules = list(source.rules())
    order = {rule.code: number for number, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {"name": "eaglehub", "semanticVersion": __version__, "rules": [_rule(rule) for rule in rules]}
        },
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(judged, finding, place, order[finding.code])
            for judged in source.judged()
            for finding, place in judged.findings
        ],
    }
    json.dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, stream, indent=2)
    stream.write("\n")


def _rule(rule: RuleFacts) -> dict[str, Any]:
    reports = "".join(f"\n- {link}" for link in rule.links)
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.title.split() if word.isalnum()),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}\n\nFix: {rule.fix}", "markdown": f"{rule.why}\n\n**Fix:** {rule.fix}\n{reports}"},
        "defaultConfiguration": {"level": str(rule.severity)},
        **({"helpUri": rule.links[0]} if rule.links else {}),
    }


def _result(judged: Judged, finding: Finding, place: Place, rule_index: int) -> dict[str, Any]:
    identity = json.dumps([judged.name, finding.code, finding.where])
    fix = f" Fix: {finding.fix}." if finding.fix else ""
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": str(finding.severity),
        "message": {"text": f"{finding.message}.{fix}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(place.file), "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": place.line},
                },
                **({"logicalLocations": [{"name": finding.where}]} if finding.where else {}),
            }
        ],
        "partialFingerprints": {"eaglehub/v1": hashlib.sha256(identity.encode()).hexdigest()},
    }


def _uri(file: str) -> str:
    from urllib.parse import quote

    return quote(file)
