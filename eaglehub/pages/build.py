"""From a report's JSON to its page, by kind of report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.pages.others import convert_page, evaluate_page, finetune_page, upgrade_page, validate_page
from eaglehub.pages.verify import server_page, verify_page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eaglehub.pages.page import Page

BUILDERS: dict[str, Callable[[Mapping[str, Any]], Page]] = {
    "verify": verify_page,
    "server": server_page,
    "evaluate": evaluate_page,
    "upgrade": upgrade_page,
    "finetune": finetune_page,
    "convert": convert_page,
    "validate": validate_page,
}
"""The kinds of report that there is a page for."""


def build_page(report: Mapping[str, Any]) -> Page:
    """The page of a report of one of these kinds."""
    return BUILDERS[report["kind"]](report)
