"""Converting: a plan from one layout to another, and its execution."""

from eaglehub.convert.convert import Conversion, execute, plan_conversion, replan

__all__ = ["Conversion", "execute", "plan_conversion", "replan"]
