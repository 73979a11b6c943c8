"""What a check can come to."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Only a failure changes the exit code."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    WARN = "warn"
    SKIPPED = "skipped"
