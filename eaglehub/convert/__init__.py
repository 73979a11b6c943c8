"""Converting: a plan from one layout to another, and its execution."""

from eaglehub.convert.convert import BrokenValues, Conversion, execute, plan_conversion, replan

__all__ = ["BrokenValues", "Conversion", "execute", "plan_conversion", "replan"]
