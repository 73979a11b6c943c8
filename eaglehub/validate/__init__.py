"""Every static trap of a drafter, found without running a model and without torch."""

from eaglehub.validate.judge import Judgement, Settings, judge
from eaglehub.validate.rule import Rule
from eaglehub.validate.rules import CATALOGUE, matching

__all__ = ["CATALOGUE", "Judgement", "Rule", "Settings", "judge", "matching"]
