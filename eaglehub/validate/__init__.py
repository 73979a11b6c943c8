"""Every static trap of a drafter, found without running a model and without torch."""

from eaglehub.validate.judge import Judgement, Settings, judge
from eaglehub.validate.output import output_faults
from eaglehub.validate.publish import LOCAL_PATH, find_secrets
from eaglehub.validate.rule import Rule
from eaglehub.validate.rules import CATALOGUE, matching

__all__ = [
    "CATALOGUE",
    "LOCAL_PATH",
    "Judgement",
    "Rule",
    "Settings",
    "find_secrets",
    "judge",
    "matching",
    "output_faults",
]
