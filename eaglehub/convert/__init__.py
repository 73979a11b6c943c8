"""Converting: a plan from one layout to another, and its execution."""

from eaglehub.convert.convert import (
    Conversion,
    Refused,
    execute,
    is_companion,
    plan_conversion,
    replan,
)
from eaglehub.convert.provenance import PROVENANCE_FILE

__all__ = [
    "PROVENANCE_FILE",
    "Conversion",
    "Refused",
    "execute",
    "is_companion",
    "plan_conversion",
    "replan",
]
