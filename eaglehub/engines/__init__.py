"""What each engine reads of a drafter, from which version on: data, and the one loader of it."""

from eaglehub.engines.engine import ENGINES, Engine, load_engine

__all__ = ["ENGINES", "Engine", "load_engine"]
