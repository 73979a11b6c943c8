"""What a report of verify says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.reports import validate

if TYPE_CHECKING:
    from tests.cli_runner import Result


def verdicts(result: Result) -> dict[str, str]:
    return {check["id"]: check["verdict"] for check in validate(result)["checks"]}


def failed(result: Result) -> list[str]:
    return [check for check, verdict in verdicts(result).items() if verdict == "fail"]


def evidence(result: Result, check: str) -> dict[str, Any]:
    (found,) = (found for found in result.json()["checks"] if found["id"] == check)
    numbers: dict[str, Any] = found["evidence"]
    return numbers
