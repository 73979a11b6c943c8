"""What a drafter is, on one screen."""

from eaglehub.inspect.report import InspectReport

__all__ = ["InspectReport"]
