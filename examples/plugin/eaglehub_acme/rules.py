"""Acme's own rules: their codes are ACME and three digits, of which the first is the family, as in eaglehub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglehub.report.findings import Severity
from eaglehub.validate.rule import Check, Hit, Need, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.validate.subject import Subject

RULES = (
    Rule(
        code="ACME901",
        title="no training run is named",
        severity=Severity.ERROR,
        why="Nobody can tell afterwards which data such a drafter has seen.",
        fix="write the run's id as acme.run into config.json",
        needs=(Need.FORMAT,),
    ),
)


def _no_run(subject: Subject) -> Iterator[Hit]:
    if subject.format.id == "acme" and not subject.config["acme"].get("run"):
        yield Hit("ACME901", "acme.run is not there", where="config.json: acme")


CHECKS = (Check(_no_run, (Need.FORMAT,)),)
